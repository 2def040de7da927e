// SPDX-License-Identifier: Apache-2.0
// What nearly every file includes, parsed once a build (cmake/precompile.cmake). A file still includes what it uses:
// the fuzz preset builds without this header and shows what is missing.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <expected>
#include <filesystem>
#include <functional>
#include <future>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
// Instantiated in src/base/format.cc.
extern template void fmt::detail::vformat_to(buffer<char>&, basic_string_view<char>,
                                             basic_format_args<format_context>, locale_ref);

// Folders that know neither Asio nor JSON take the above alone.
#ifndef GB_PRECOMPILED_STD
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/json.hpp>

#ifdef GB_PRECOMPILED_TESTS
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#else
#include <CLI/CLI.hpp>
#endif
#endif
