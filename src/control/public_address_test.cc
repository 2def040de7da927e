// SPDX-License-Identifier: Apache-2.0
#include "control/public_address.h"

#include <gtest/gtest.h>

namespace gb {
namespace {

bool is_public(const char* text) {
    return is_public_address(boost::asio::ip::make_address(text));
}

TEST(PublicAddress, OrdinaryOnesArePublic) {
    for (const char* text : {"1.1.1.1",         "8.8.8.8",          "9.255.255.255",
                             "11.0.0.0",        "100.63.255.255",   "100.128.0.0",
                             "126.255.255.255", "128.0.0.0",        "169.253.255.255",
                             "169.255.0.0",     "172.15.255.255",   "172.32.0.0",
                             "192.0.1.0",       "192.167.255.255",  "192.169.0.0",
                             "198.17.255.255",  "198.20.0.0",       "223.255.255.255",
                             "2606:4700::1111", "2a00:1450::1",     "2001:4860:4860::8888",
                             "::ffff:8.8.8.8",  "64:ff9b::8.8.8.8", "2002:808:808::1"})
        EXPECT_TRUE(is_public(text)) << text;
}

TEST(PublicAddress, WhatIsNotTheInternetIsNot) {
    for (const char* text : {"0.0.0.0",
                             "0.1.2.3",
                             "10.0.0.1",
                             "10.255.255.255",
                             "100.64.0.1",
                             "100.127.255.255",
                             "127.0.0.1",
                             "127.1.2.3",
                             "169.254.169.254",
                             "172.16.0.1",
                             "172.31.255.255",
                             "192.0.0.8",
                             "192.0.2.1",
                             "192.88.99.1",
                             "192.168.1.1",
                             "198.18.0.1",
                             "198.19.255.255",
                             "198.51.100.7",
                             "203.0.113.7",
                             "224.0.0.1",
                             "239.255.255.255",
                             "240.0.0.1",
                             "255.255.255.255",
                             "::",
                             "::1",
                             "fe80::1",
                             "fec0::1",
                             "fc00::1",
                             "fd00:ec2::254",
                             "ff02::1",
                             "2001:db8::1",
                             "2001::1",
                             "2001:1::1",
                             "3fff::1",
                             "100::1",
                             "5f00::1",
                             "4000::1"})
        EXPECT_FALSE(is_public(text)) << text;
}

TEST(PublicAddress, AnAddressInsideAnAddressIsJudged) {
    for (const char* text :
         {"::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:0.0.0.0",
          "64:ff9b::10.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b:1::1", "2002:7f00:1::1",
          "2002:a00:1::", "2002:c0a8:101::1", "::127.0.0.1", "::8.8.8.8", "::ffff:0:8.8.8.8"})
        EXPECT_FALSE(is_public(text)) << text;
}

}  // namespace
}  // namespace gb
