// SPDX-License-Identifier: Apache-2.0
// Slots whose machines outlive the server: what holds meanwhile, and how the next server takes them over. A
// child process plays the server that is killed; this one holds the namespaces, as machines do.
#include <array>
#include <atomic>
#include <thread>

#include <sys/wait.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "base/file.h"
#include "net/address_block.h"
#include "net/host_rules.h"
#include "net/net_world.h"
#include "net/slot_rules.h"

namespace gb::net {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

struct LeftSlot {
    std::size_t number = 0;
    UniqueFd netns, guest;
    [[nodiscard]] UniqueFd copy() const { return UniqueFd(::fcntl(netns.get(), F_DUPFD_CLOEXEC, 0)); }
    [[nodiscard]] int tcp(std::string_view address) const {
        return in_netns(guest.get(), [&] { return tcp_probe(address, 443); });
    }
};

class SlotAdoptTest : public testing::Test {
  protected:
    static constexpr std::string_view kDenied = "8.8.8.8";
    static constexpr std::string_view kOpen = "8.9.8.8";

    void SetUp() override {
        GB_NEEDS_ROOT();
        world_.emplace();
    }

    static EgressPolicy policy() { return *parse_policy({.deny_out = {"8.8.8.0/24"}}); }

    // Two slots with that policy, of a server that was killed.
    void leave_two() {
        struct Left {
            std::size_t number;
            int netns, guest;
        };
        std::array<Left, 2> left{};
        int ends[2];
        ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
        UniqueFd read_end(ends[0]), write_end(ends[1]);
        const pid_t child = ::fork();
        if (child == 0) {
            auto host = HostNetwork::create({.instance = instance_});
            std::vector<std::unique_ptr<Slot>> slots;
            for (Left& item : left) {
                auto slot = host ? Slot::create(**host, {.link = GuestLink::veth}) : nullptr;
                if (!slot || !(*slot)->set_policy(policy())) ::_exit(1);
                item = {(*slot)->number(), (*slot)->netns_fd(), (*slot)->guest_netns_fd()};
                slots.push_back(std::move(*slot));
            }
            (void)write_all(write_end.get(), {reinterpret_cast<const char*>(left.data()), sizeof left});
            for (;;) ::pause();
        }
        write_end.reset();
        ASSERT_EQ(::read(read_end.get(), left.data(), sizeof left), static_cast<ssize_t>(sizeof left));
        auto take = [&](int fd) {
            return UniqueFd(::open(fmt::format("/proc/{}/fd/{}", child, fd).c_str(), O_RDONLY | O_CLOEXEC));
        };
        for (const Left& item : left) slots_.push_back({item.number, take(item.netns), take(item.guest)});
        routes_ = routes();
        ::kill(child, SIGKILL);
        ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    }

    Result<std::unique_ptr<HostNetwork>> next_server(std::vector<std::size_t> keep) {
        return HostNetwork::create({.instance = instance_, .keep = std::move(keep)});
    }
    static std::string routes() { return NetWorld::command({"ip", "route", "show", "type", "unreachable"}); }
    static std::string rules() { return NetWorld::command({"nft", "list", "ruleset"}); }
    static std::vector<std::string> links() { return *Links::open()->names(); }

    std::optional<NetWorld> world_;
    std::string instance_ = NetWorld::unique_instance();
    std::vector<LeftSlot> slots_;
    std::string routes_;
};

TEST_F(SlotAdoptTest, PolicyHoldsWithoutAServerAndWithTheNext) {
    ASSERT_NO_FATAL_FAILURE(leave_two());
    const LeftSlot& left = slots_[0];
    EXPECT_EQ(left.tcp(kDenied), ECONNREFUSED);
    EXPECT_EQ(left.tcp(kOpen), 0) << "nobody is needed for what is allowed";

    UniqueFd open = in_netns(left.guest.get(), [] { return tcp_connect(kOpen, 443); });
    EXPECT_EQ(echo(open.get(), "before"), 0);

    // Somebody inside tries all the time.
    std::atomic<bool> stopping = false, ready = false;
    std::atomic<int> tried = 0, passed = 0;
    std::thread guest([&] {
        auto inside = NetnsScope::enter(left.guest.get());
        for (ready = true; !stopping; ++tried)
            if (tcp_probe(kDenied, 443) == 0) ++passed;
    });
    while (!ready || tried == 0) std::this_thread::yield();
    for (int i = 0; i < 3; ++i) {
        auto host = next_server({left.number});
        ASSERT_TRUE(host) << host.error().message;
        auto slot = Slot::adopt(**host, left.number, left.copy());
        ASSERT_TRUE(slot) << slot.error().message;
        ASSERT_TRUE((*slot)->set_policy(policy()));
        const int before = tried;
        while (tried < before + 5) std::this_thread::yield();
        (*host)->leave();
    }
    stopping = true;
    guest.join();
    EXPECT_EQ(passed, 0) << "of " << tried;
    EXPECT_EQ(echo(open.get(), "after"), 0) << "a connection lives on";
    EXPECT_EQ(left.tcp(kOpen), 0);
}

TEST_F(SlotAdoptTest, RatesAreThoseOfTheNextServer) {
    ASSERT_NO_FATAL_FAILURE(leave_two());
    const LeftSlot& left = slots_[0];
    for (const std::uint64_t rate : {1'000'000, 0}) {
        auto host = next_server({left.number});
        ASSERT_TRUE(host) << host.error().message;
        auto slot = Slot::adopt(**host, left.number, left.copy(),
                                {.upload_bytes_s = rate, .download_bytes_s = rate});
        ASSERT_TRUE(slot) << slot.error().message;
        const std::string up = in_netns((*slot)->netns_fd(), [] {
            return NetWorld::command({"tc", "qdisc", "show", "dev", std::string(kUplink)});
        });
        const std::string down =
            NetWorld::command({"tc", "qdisc", "show", "dev", (*host)->link_name(left.number)});
        EXPECT_EQ(up.contains("rate 8Mbit"), rate != 0) << up;
        EXPECT_EQ(down.contains("rate 8Mbit"), rate != 0) << down;
        (*host)->leave();
    }
}

TEST_F(SlotAdoptTest, AnAdoptedSlotIsLikeAnyOther) {
    ASSERT_NO_FATAL_FAILURE(leave_two());
    const LeftSlot& left = slots_[0];
    EXPECT_EQ(left.tcp(kDenied), ECONNREFUSED);
    auto host = next_server({left.number});
    ASSERT_TRUE(host) << host.error().message;
    auto slot = Slot::adopt(**host, left.number, left.copy());
    ASSERT_TRUE(slot) << slot.error().message;
    EXPECT_EQ((*slot)->number(), left.number);
    ASSERT_TRUE((*slot)->set_policy(policy()));
    EXPECT_EQ(left.tcp(kDenied), ECONNREFUSED);
    EXPECT_THAT(brief(decisions_of(**slot)), Contains("deny tcp 8.8.8.8 443 deny 8.8.8.0/24"));
    ASSERT_TRUE((*slot)->set_policy(open_policy()));
    EXPECT_EQ(left.tcp(kDenied), 0);
    EXPECT_EQ(*(*slot)->suppressed(), 0U);
    // What only the host's rules stop is theirs again too.
    const std::string other = to_string(slot_addresses((*host)->block(), left.number + 1).slot);
    EXPECT_NE(left.tcp(other), 0);
    // Its number is taken, and new slots live beside it.
    for (int i = 0; i < 3; ++i) EXPECT_NE(*(*host)->take_number(), left.number);
}

TEST_F(SlotAdoptTest, OnlyWhatIsKeptStays) {
    ASSERT_NO_FATAL_FAILURE(leave_two());
    const std::string table = host_table(instance_tag(instance_));
    {
        auto host = next_server({slots_[1].number, 400, 100'000});
        ASSERT_TRUE(host) << host.error().message;
        EXPECT_THAT(links(), Contains((*host)->link_name(slots_[1].number)));
        EXPECT_THAT(links(), Not(Contains((*host)->link_name(slots_[0].number))));
        EXPECT_EQ(routes(), routes_) << "the same block";
        EXPECT_TRUE((*host)->kept(slots_[1].number));
        for (std::size_t number : {slots_[0].number, std::size_t{400}, std::size_t{100'000}}) {
            EXPECT_FALSE((*host)->kept(number));
            EXPECT_EQ(Slot::adopt(**host, number, slots_[0].copy()).error().code,
                      ErrorCode::failed_precondition);
        }
        const std::string now = rules();
        EXPECT_EQ(now.find("table inet " + table), now.rfind("table inet " + table));
        EXPECT_EQ(now.find("chain spoofed"), now.rfind("chain spoofed")) << "not the old rules and the new";
    }
    EXPECT_EQ(routes(), "") << "a server that ends for good leaves nothing";
    EXPECT_THAT(rules(), Not(HasSubstr(table)));
}

TEST_F(SlotAdoptTest, NothingToKeepIsAFreshStart) {
    ASSERT_NO_FATAL_FAILURE(leave_two());
    NetWorld::command({"ip", "route", "flush", "type", "unreachable"});  // without it the block is not known
    auto host = next_server({slots_[0].number});
    ASSERT_TRUE(host) << host.error().message;
    EXPECT_FALSE((*host)->kept(slots_[0].number));
    for (const LeftSlot& left : slots_) {
        EXPECT_THAT(links(), Not(Contains((*host)->link_name(left.number))));
        EXPECT_NE(left.tcp(kOpen), 0) << "what was not adopted reaches nothing";
    }
}

TEST_F(SlotAdoptTest, AnotherNamespaceIsRefused) {
    ASSERT_NO_FATAL_FAILURE(leave_two());
    auto host = next_server({slots_[0].number, slots_[1].number});
    ASSERT_TRUE(host) << host.error().message;
    EXPECT_EQ(Slot::adopt(**host, slots_[0].number, slots_[1].copy()).error().code,
              ErrorCode::failed_precondition);
    EXPECT_EQ(Slot::adopt(**host, slots_[0].number, slots_[0].copy()).error().code,
              ErrorCode::failed_precondition)
        << "a number is adopted once";
    auto own = current_netns();
    EXPECT_EQ(Slot::adopt(**host, slots_[1].number, std::move(*own)).error().code,
              ErrorCode::failed_precondition);
}

TEST_F(SlotAdoptTest, NumbersThatNobodyAdoptsAreFreeAgain) {
    ASSERT_NO_FATAL_FAILURE(leave_two());
    auto host = next_server({slots_[0].number, slots_[1].number});
    ASSERT_TRUE(host) << host.error().message;
    auto slot = Slot::adopt(**host, slots_[0].number, slots_[0].copy());
    ASSERT_TRUE(slot) << slot.error().message;
    (*host)->release_kept();
    EXPECT_FALSE((*host)->kept(slots_[1].number));
    std::vector<std::size_t> free;
    while (auto number = (*host)->take_number()) free.push_back(*number);
    EXPECT_THAT(free, Contains(slots_[1].number));
    EXPECT_THAT(free, Not(Contains(slots_[0].number)));
}

TEST_F(SlotAdoptTest, ASlotWithoutItsRulesIsRefused) {
    ASSERT_NO_FATAL_FAILURE(leave_two());
    in_netns(slots_[0].netns.get(),
             [] { return NetWorld::command({"nft", "delete", "table", "netdev", "glovebox"}); });
    auto host = next_server({slots_[0].number});
    ASSERT_TRUE(host) << host.error().message;
    EXPECT_FALSE(Slot::adopt(**host, slots_[0].number, slots_[0].copy()).has_value());
}

TEST_F(SlotAdoptTest, NamespacesHaveIdentities) {
    auto own = netns_of(::getpid()), created = create_netns();
    ASSERT_TRUE(own && created);
    EXPECT_NE(*netns_id(own->get()), *netns_id(created->get()));
    EXPECT_EQ(*netns_id(current_netns()->get()), *netns_id(netns_of(::gettid())->get()));
    EXPECT_EQ(netns_of(0x3fffffff).error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace gb::net
