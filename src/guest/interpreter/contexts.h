// SPDX-License-Identifier: Apache-2.0
// All contexts of this server, in the order they were made, and the default context of each language.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "guest/interpreter/context.h"
#include "guest/interpreter/startup.h"

namespace gb::interpreter {

struct InterpreterOptions {
    std::filesystem::path run_dir = "/run/glovebox";
    Runtimes runtimes = find_runtimes();
    std::string cwd = "/home/user";    // of contexts that name none
    std::vector<std::string> preload;  // Python modules that kernels need not import
    bool zygote_first = true;          // Python contexts wait for what preloads; otherwise it follows them
    // Languages whose default context starts with the server. Those without a kernel here are left out.
    std::vector<std::string> languages = {"python"};
    // Languages whose default context starts with the server too, but waits unseen until somebody asks for
    // it. When memory gets short, its kernel is the first to go, and is started again only when it is asked
    // for.
    std::vector<std::string> spares;
};

class Contexts {
  public:
    Contexts(asio::any_io_executor executor, InterpreterOptions options);
    ~Contexts();

    // Ends what an earlier server left behind. Before anything is started.
    void clean_up() { sweep_kernels(options_.run_dir); }
    // Starts the default contexts and tries again until each stands.
    awaitable<void> start_defaults();
    [[nodiscard]] bool ready() const;  // the default contexts run, and the spare ones have been started
    // While it is not: what is ready, what is being started and what waits. See startup.h.
    [[nodiscard]] std::string startup() const;

    // An empty cwd means the default one.
    awaitable<Result<std::shared_ptr<Context>>> create(std::string language, std::string cwd);
    awaitable<Result<std::shared_ptr<Context>>> default_for(std::string language);
    Result<std::shared_ptr<Context>> find(std::string_view id) const;
    Status remove(std::string_view id);
    [[nodiscard]] const std::vector<std::shared_ptr<Context>>& all() const { return all_; }

    void close_all();  // their coroutines end, kernels are killed

  private:
    awaitable<Status> start_default(const std::string& language);
    Status prepare_scripts();
    awaitable<void> start_spare(const std::string& language);
    awaitable<void> start_zygote();
    std::shared_ptr<Context> make(std::string language, std::string cwd,
                                  Context::Role role = Context::Role::in_use);
    awaitable<Result<std::shared_ptr<Context>>> started(std::shared_ptr<Context> context);
    void forget(const Context& context);
    [[nodiscard]] bool stands(std::string_view language) const;  // its default context runs

    asio::any_io_executor executor_;
    InterpreterOptions options_;
    std::filesystem::path scripts_;
    zmq::context_t zmq_;
    std::vector<std::shared_ptr<Context>> all_;
    std::map<std::string, std::shared_ptr<Context>, std::less<>> defaults_;
    std::shared_ptr<PythonZygote> zygote_;
    Startup startup_;
    std::vector<std::string> languages_;  // of default contexts that start with the server
    std::size_t spares_to_start_ = 0;
    bool scripts_written_ = false;
    bool closing_ = false;
};

}  // namespace gb::interpreter
