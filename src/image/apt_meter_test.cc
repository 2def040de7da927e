// SPDX-License-Identifier: Apache-2.0
#include "image/apt_meter.h"

#include <gtest/gtest.h>

namespace gb::image {
namespace {

TEST(AptMeter, GoesFromNothingToAllAndNeverBack) {
    AptMeter meter;
    double last = 0;
    EXPECT_EQ(meter.fraction(), 0);
    for (const char* line : {
             "I: running apt-get update...",
             "Get:1 http://deb.debian.org/debian bookworm InRelease [151 kB]",
             "0 upgraded, 2 newly installed, 0 to remove and 0 not upgraded.",
             "Get:1 http://x bookworm/main amd64 a",
             "Get:2 http://x bookworm/main amd64 b",
             "Unpacking a (1.0) ...",
             "Unpacking b (1.0) ...",
             "Setting up a (1.0) ...",
             "Setting up b (1.0) ...",
             "I: installing remaining packages inside the chroot...",
             "0 upgraded, 1 newly installed, 0 to remove and 0 not upgraded.",
             "Unpacking c:amd64 (1) ...",
             "Setting up c:amd64 (1) ...",
             "I: success in 118.6750 seconds",
         }) {
        meter.line(line);
        EXPECT_GE(meter.fraction(), last) << line;
        last = meter.fraction();
    }
    EXPECT_EQ(last, 1);
}

TEST(AptMeter, SaysWhatIsBeingDone) {
    AptMeter meter;
    meter.line("0 upgraded, 69 newly installed, 0 to remove and 0 not upgraded.");
    meter.line("Get:1 http://deb.debian.org/debian bookworm/main amd64 libc6 amd64 2.36 [2 kB]");
    EXPECT_EQ(meter.detail(), "downloading, 1 of 69");
    meter.line("Unpacking libc6:amd64 (2.36-9+deb12u14) ...");
    EXPECT_EQ(meter.detail(), "unpacking libc6");
    meter.line("Setting up libc6:amd64 (2.36-9+deb12u14) ...");
    EXPECT_EQ(meter.detail(), "setting up libc6");
    meter.line("Processing triggers for libc-bin (2.36-9+deb12u14) ...");
    EXPECT_EQ(meter.detail(), "setting up libc6");
}

TEST(AptMeter, ToleratesMoreLinesThanAnnounced) {
    AptMeter meter;
    meter.line("0 upgraded, 1 newly installed, 0 to remove and 0 not upgraded.");
    for (int i = 0; i < 5; ++i) meter.line("Setting up a (1) ...");
    for (int i = 0; i < 5; ++i) meter.line("0 upgraded, 0 newly installed, 0 to remove and 0 not upgraded.");
    meter.line("Setting up b (1) ...");
    EXPECT_LE(meter.fraction(), 1);
}

}  // namespace
}  // namespace gb::image
