// SPDX-License-Identifier: Apache-2.0
#include "engine/console.h"

#include <condition_variable>
#include <mutex>
#include <thread>
#include <unordered_map>

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <fcntl.h>
#include <unistd.h>

namespace gb::engine {
namespace {

// With a pipe's 64 KiB this lets one guest print some 6 MB a second, at 100 rounds of this thread a second.
constexpr std::chrono::milliseconds kReadRound{10};
constexpr std::uint64_t kStop = 0;

}  // namespace

struct ConsoleTail::Stream {
    std::uint64_t id = 0;
    std::size_t keep = 0;
    UniqueFd pipe;  // used by the reading thread, and closed under the reader's lock

    std::mutex mutex;
    std::condition_variable changed;
    std::string tail;
    std::uint64_t bytes = 0;
    bool ended = false;

    void append(std::string_view data) {
        std::lock_guard lock(mutex);
        bytes += data.size();
        tail.append(data);
        // Cut rarely: a move of the kept part for every few bytes would be quadratic.
        if (tail.size() > 2 * keep) tail.erase(0, tail.size() - keep);
        changed.notify_all();
    }
    void end() {
        std::lock_guard lock(mutex);
        ended = true;
        changed.notify_all();
    }
};

struct ConsoleReader::State {
    UniqueFd epoll{::epoll_create1(EPOLL_CLOEXEC)};
    UniqueFd stop{::eventfd(0, EFD_CLOEXEC)};
    std::mutex mutex;
    std::unordered_map<std::uint64_t, std::shared_ptr<ConsoleTail::Stream>> streams;
    std::uint64_t next_id = kStop + 1;
    std::thread thread;

    void run() {
        std::string buffer(64 * 1024, '\0');
        for (;;) {
            epoll_event events[64];
            const int count = ::epoll_wait(epoll.get(), events, 64, -1);
            if (count < 0 && errno != EINTR) return;
            for (int i = 0; i < count; ++i) {
                if (events[i].data.u64 == kStop) return;
                read_one(events[i].data.u64, buffer);
            }
            std::this_thread::sleep_for(kReadRound);
        }
    }

    void close(ConsoleTail::Stream& stream) const {
        if (!stream.pipe) return;
        ::epoll_ctl(epoll.get(), EPOLL_CTL_DEL, stream.pipe.get(), nullptr);
        stream.pipe.reset();
    }

    void read_one(std::uint64_t id, std::string& buffer) {
        std::lock_guard lock(mutex);
        auto found = streams.find(id);
        if (found == streams.end()) return;
        ConsoleTail::Stream& stream = *found->second;
        const ssize_t n = ::read(stream.pipe.get(), buffer.data(), buffer.size());
        if (n > 0) return stream.append({buffer.data(), static_cast<std::size_t>(n)});
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
        close(stream);
        stream.end();
        streams.erase(found);
    }
};

ConsoleReader::ConsoleReader() : state_(std::make_unique<State>()) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = kStop;
    ::epoll_ctl(state_->epoll.get(), EPOLL_CTL_ADD, state_->stop.get(), &event);
    state_->thread = std::thread([state = state_.get()] { state->run(); });
}

ConsoleReader::~ConsoleReader() {
    const std::uint64_t one = 1;
    [[maybe_unused]] ssize_t n = ::write(state_->stop.get(), &one, sizeof one);
    state_->thread.join();
}

Result<std::unique_ptr<ConsoleTail>> ConsoleReader::follow(UniqueFd pipe, std::size_t keep_bytes) {
    if (::fcntl(pipe.get(), F_SETFL, O_NONBLOCK) != 0) return fail_errno("set a console pipe non-blocking");
    auto stream = std::make_shared<ConsoleTail::Stream>();
    stream->keep = keep_bytes;
    std::lock_guard lock(state_->mutex);
    stream->id = state_->next_id++;
    stream->pipe = std::move(pipe);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = stream->id;
    if (::epoll_ctl(state_->epoll.get(), EPOLL_CTL_ADD, stream->pipe.get(), &event) != 0)
        return fail_errno("watch a console pipe");
    state_->streams.emplace(stream->id, stream);
    return std::unique_ptr<ConsoleTail>(new ConsoleTail(*this, std::move(stream)));
}

ConsoleTail::ConsoleTail(ConsoleReader& reader, std::shared_ptr<Stream> stream)
    : reader_(reader), stream_(std::move(stream)) {}

ConsoleTail::~ConsoleTail() {
    std::lock_guard lock(reader_.state_->mutex);
    reader_.state_->close(*stream_);
    reader_.state_->streams.erase(stream_->id);
}

std::string ConsoleTail::text() const {
    std::lock_guard lock(stream_->mutex);
    const std::string& tail = stream_->tail;
    return tail.size() > stream_->keep ? tail.substr(tail.size() - stream_->keep) : tail;
}

std::uint64_t ConsoleTail::bytes() const {
    std::lock_guard lock(stream_->mutex);
    return stream_->bytes;
}

bool ConsoleTail::wait_for(std::string_view needle, std::chrono::milliseconds limit) const {
    std::unique_lock lock(stream_->mutex);
    auto found = [&] { return stream_->tail.find(needle) != std::string::npos; };
    stream_->changed.wait_for(lock, limit, [&] { return stream_->ended || found(); });
    return found();
}

bool ConsoleTail::wait_end(std::chrono::milliseconds limit) const {
    std::unique_lock lock(stream_->mutex);
    return stream_->changed.wait_for(lock, limit, [&] { return stream_->ended; });
}

}  // namespace gb::engine
