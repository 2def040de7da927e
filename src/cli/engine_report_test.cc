// SPDX-License-Identifier: Apache-2.0
#include "cli/engine_report.h"

#include <array>

#include <boost/json/serialize.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gb::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Outcome = TrialStep::Outcome;

TEST(EngineReport, NamesNobody) {
    const std::array<std::string, 1> host{"build-host-7"};
    for (const auto& [error, published] : std::initializer_list<std::pair<std::string_view, std::string_view>>{
             {"apt-get: Could not resolve 'mirror.example.org:3142'.", "apt-get: Could not resolve '<name>'."},
             {"E: https://user:word@mirror.example.org/debian x", "E: <url> x"},
             {"connect to 192.0.2.7:80, then 2001:db8::1 and [fe80::1]:443", "connect to <address>, then <address> and <address>"},
             {"device 02:00:00:aa:bb:01 of alice@example.org", "device <address> of <address>"},
             {"open /home/alice/glovebox/doctor/run/disk.img: No space", "open <path>: No space"},
             {"open /dev/kvm: Permission denied", "open /dev/kvm: Permission denied"},
             {"QEMU 7.2.22: could not load bios-microvm.bin\n\tat once\n", "QEMU 7.2.22: could not load bios-microvm.bin at once"},
             {"build-host-7: fails", "<hidden>: fails"},
             {"", ""}})
        EXPECT_EQ(publishable(error, host), published);
    const std::array<std::string, 1> short_name{"vm"};
    EXPECT_EQ(publishable("/dev/kvm of vm, vm_1", short_name), "/dev/kvm of <hidden>, vm_1");
    EXPECT_LE(publishable(std::string(1000, 'x')).size(), 310U);
}

EngineTrial half_done() {
    EngineTrial trial;
    trial.accelerator = {engine::Accelerator::tcg, "there is no /dev/kvm", false};
    trial.vmm_version = "7.2.22";
    trial.steps = {{"boot", Outcome::passed, 5210, "256 MiB", ""},
                   {"capture", Outcome::failed, 31, "", "write /srv/alice/state.bin: no space"},
                   {"restore", Outcome::not_tried, 0, "", ""}};
    return trial;
}

TEST(EngineReport, SaysWhatPassedAndWhatDidNot) {
    EngineHost host;
    host.version = "glovebox 1.2.3";
    const std::string text = engine_report(host, half_done());
    EXPECT_THAT(text, HasSubstr("\nglovebox      glovebox 1.2.3\n"));
    EXPECT_THAT(text, HasSubstr("\naccelerator   tcg: there is no /dev/kvm\n"));
    EXPECT_THAT(text, HasSubstr("\nboot          ok, 5210 ms, 256 MiB\n"));
    EXPECT_THAT(text, HasSubstr("\ncapture       FAILED, 31 ms\n              write <path>: no space\n"));
    EXPECT_THAT(text, HasSubstr("\nrestore       not tried\n"));
    EXPECT_THAT(text, HasSubstr("\nprocessor     unknown\n"));
    EXPECT_THAT(text, HasSubstr("\nresult        FAILED\n"));
    EXPECT_THAT(text, Not(HasSubstr("alice")));

    const std::string json = boost::json::serialize(engine_report_json(host, half_done()));
    EXPECT_THAT(json, HasSubstr(R"({"name":"capture","outcome":"FAILED","ms":31,"error":"write <path>: no space"})"));
    EXPECT_THAT(json, HasSubstr(R"("passed":false)"));
    EngineTrial good = half_done();
    for (TrialStep& step : good.steps) step.outcome = Outcome::passed;
    EXPECT_THAT(engine_report(host, good), HasSubstr("result        passed"));
}

TEST(EngineReport, ReadsWhatAHostSaysOfItself) {
    const std::string cpuinfo =
        "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 1\nmodel name\t: AMD EPYC\n"
        "stepping\t: 2\nflags\t\t: fpu svm hypervisor lm\n\nprocessor\t: 1\nmodel name\t: AMD EPYC\n";
    EXPECT_EQ(processor_of(cpuinfo), "AMD EPYC (family 25, model 1, stepping 2), 2 processors");
    EXPECT_EQ(virtualised_of(cpuinfo), "yes, this host is a virtual machine itself; its processor offers svm");
    EXPECT_EQ(virtualised_of("flags\t\t: fpu lm\n"), "no; its processor offers neither vmx nor svm");
    EXPECT_EQ(virtualised_of("Features\t: fp asimd\n"), "");
    EXPECT_EQ(processor_of("processor\t: 0\nFeatures\t: fp asimd\n"), "");
    EXPECT_EQ(distribution_of("NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n"), "Debian GNU/Linux 12 (bookworm)");
    EXPECT_EQ(distribution_of("NAME=x\n"), "");
}

}  // namespace
}  // namespace gb::cli
