// SPDX-License-Identifier: Apache-2.0
#include "engine/microvm/device_state.h"

#include <gtest/gtest.h>

namespace gb::engine {
namespace {

using namespace std::string_literals;

const std::string kMagic = "QEVM\0\0\0\3"s;
const std::string kName = "\7\0\0\0\7microvm"s;
const std::string kCapabilities =
    "\5\32configuration/capabilities\0\0\0\1\0\0\0\2\17x-ignore-shared\6events"s;
const std::string kDevices = "\4\0\0\0\1\5timer and so on"s;

TEST(DeviceState, ConfigurationIsTakenOut) {
    for (const std::string& configuration :
         {kName, kName + kCapabilities, kName + "\5\36configuration/target-page-bits\0\0\0\1\0\0\0\14"s + kCapabilities}) {
        const auto rest = without_configuration(kMagic + configuration + kDevices);
        ASSERT_TRUE(rest) << rest.error().message;
        EXPECT_EQ(*rest, kMagic + kDevices);
        EXPECT_EQ(*without_configuration(*rest), *rest) << "once is enough";
    }
}

TEST(DeviceState, WhatIsNotKnownIsNotCut) {
    const std::string unknown = kMagic + kName + "\5\24configuration/x-uuid\0\0\0\1"s + kDevices;
    EXPECT_EQ(without_configuration(unknown).error().message, "QEMU's state has an unknown part: configuration/x-uuid");
    for (const std::string& text : {""s, "QEVM"s, "QEVM\0\0\0\2"s + kDevices, "nonsense and more"s})
        EXPECT_FALSE(without_configuration(text)) << text;
    const std::string whole = kMagic + kName + kCapabilities;
    for (std::size_t length = kMagic.size() + 1; length < whole.size(); ++length)
        if (length != kMagic.size() + kName.size()) EXPECT_FALSE(without_configuration(whole.substr(0, length))) << length;
}

}  // namespace
}  // namespace gb::engine
