// All contexts of this server, in the order they were made, and the default context of each language.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "guest/interpreter/context.h"

namespace gb::interpreter {

struct InterpreterOptions {
    std::filesystem::path run_dir = "/run/glovebox";
    std::string python = "/usr/bin/python3";
    std::string cwd = "/home/user";    // of contexts that name none
    std::vector<std::string> preload;  // for the default Python context
};

class Contexts {
  public:
    Contexts(asio::any_io_executor executor, InterpreterOptions options);

    // Ends what an earlier server left behind. Before anything is started.
    void clean_up() { sweep_kernels(options_.run_dir); }
    // Starts the default Python context and tries again until it stands.
    awaitable<void> start_default();
    [[nodiscard]] bool ready() const;                                      // the default Python context runs
    [[nodiscard]] const std::string& trouble() const { return trouble_; }  // why not, empty while all is well

    // An empty cwd means the default one.
    awaitable<Result<std::shared_ptr<Context>>> create(std::string language, std::string cwd);
    awaitable<Result<std::shared_ptr<Context>>> default_for(std::string language);
    Result<std::shared_ptr<Context>> find(std::string_view id) const;
    Status remove(std::string_view id);
    [[nodiscard]] const std::vector<std::shared_ptr<Context>>& all() const { return all_; }

    void close_all();  // their coroutines end, kernels are killed

  private:
    std::shared_ptr<Context> add(std::string language, std::string cwd, std::vector<std::string> preload);
    awaitable<Result<std::shared_ptr<Context>>> started(std::shared_ptr<Context> context);
    void forget(const Context& context);

    asio::any_io_executor executor_;
    InterpreterOptions options_;
    std::filesystem::path scripts_;
    zmq::context_t zmq_;
    std::vector<std::shared_ptr<Context>> all_;
    std::map<std::string, std::shared_ptr<Context>, std::less<>> defaults_;
    std::string trouble_ = "starting";
    bool preloaded_ = false;
    bool closing_ = false;
};

}  // namespace gb::interpreter
