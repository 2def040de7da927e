// SPDX-License-Identifier: Apache-2.0
#include "engine/microvm/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace gb::engine {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

MachineSpec sandbox() {
    MachineSpec spec;
    spec.memory_mib = 512;
    spec.memory = {"/templates/t/memory.img", MemoryMapping::copy_on_write};
    spec.disk = {"/sandboxes/s/disk.qcow2", DiskFormat::qcow2, "/templates/t/disk.img"};
    return spec;
}

MachineSpec builder() {
    MachineSpec spec = sandbox();
    spec.memory.mapping = MemoryMapping::shared;
    spec.kernel = {"/kernel", "/initrd", "console=ttyS0 quiet"};
    return spec;
}

std::vector<std::string> line(const MachineSpec& spec, bool incoming, bool readonly_backend = false) {
    auto out = qemu_command_line(spec, {.incoming = incoming, .readonly_backend = readonly_backend});
    EXPECT_TRUE(out.has_value()) << out.error().message;
    return out.value_or(std::vector<std::string>());
}

std::string value_of(const std::vector<std::string>& args, std::string_view option) {
    for (std::size_t i = 0; i + 1 < args.size(); ++i)
        if (args[i] == option) return args[i + 1];
    return "(none)";
}

TEST(CommandLine, NamesOnlyPathsOfTheJail) {
    for (const auto& args : {line(sandbox(), true), line(builder(), false)})
        for (const std::string& arg : args) {
            EXPECT_THAT(arg, Not(HasSubstr("/templates"))) << arg;
            EXPECT_THAT(arg, Not(HasSubstr("/sandboxes"))) << arg;
        }
}

TEST(CommandLine, SameDevicesBeforeAndAfter) {
    auto devices = [](const std::vector<std::string>& args) {
        std::vector<std::string> out;
        for (std::size_t i = 0; i + 1 < args.size(); ++i)
            for (const char* option :
                 {"-M", "-cpu", "-smp", "-m", "-device", "-serial", "-global", "-accel", "-drive"})
                if (args[i] == option && args[i + 1] != "migration.send-configuration=off")
                    out.push_back(args[i] + " " + args[i + 1]);
        return out;
    };
    EXPECT_EQ(devices(line(builder(), false)), devices(line(sandbox(), true)));
}

// A capture says what it is and is relieved of it (device_state.h); whoever loads expects nothing of the kind.
TEST(CommandLine, OnlyWhoLoadsAStateExpectsNoConfiguration) {
    EXPECT_THAT(line(sandbox(), true), Contains("migration.send-configuration=off"));
    EXPECT_THAT(line(builder(), false), Not(Contains("migration.send-configuration=off")));
}

TEST(CommandLine, MemoryIsSharedOnlyForACapture) {
    EXPECT_THAT(value_of(line(builder(), false), "-object"), HasSubstr("share=on"));
    EXPECT_THAT(value_of(line(sandbox(), true), "-object"), HasSubstr("share=off"));
    EXPECT_THAT(value_of(line(sandbox(), true), "-object"), Not(HasSubstr("readonly")));
    EXPECT_THAT(value_of(line(sandbox(), true, true), "-object"), HasSubstr("readonly=on,rom=off"));
    EXPECT_THAT(value_of(line(builder(), false, true), "-object"), Not(HasSubstr("readonly")));
}

TEST(CommandLine, RestoreCarriesNoKernel) {
    const auto args = line(sandbox(), true);
    EXPECT_EQ(value_of(args, "-incoming"), "defer");
    EXPECT_THAT(args, Not(Contains("-kernel")));
    EXPECT_THAT(args, Contains("-S"));
    EXPECT_EQ(value_of(line(builder(), false), "-append"), "console=ttyS0 quiet");
}

TEST(CommandLine, MonitorListensWhereALaterServerCanConnect) {
    auto monitor = [](const MachineSpec& spec) { return value_of(line(spec, true), "-chardev"); };
    MachineSpec spec = sandbox();
    EXPECT_EQ(monitor(spec), "socket,id=monitor,fd=3");
    spec.monitor = "/sandboxes/s/monitor";
    EXPECT_EQ(monitor(spec), "socket,id=monitor,fd=3,server=on,wait=off");
}

TEST(CommandLine, SeccompAndDiskErrors) {
    const auto args = line(sandbox(), true);
    EXPECT_EQ(value_of(args, "-sandbox"),
              "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny");
    EXPECT_THAT(value_of(args, "-drive"), HasSubstr("rerror=report,werror=enospc"));
    EXPECT_THAT(value_of(args, "-drive"), HasSubstr("backing.driver=raw"))
        << "a format is stated, never detected";
    EXPECT_THAT(args, Contains("-nodefaults"));
    EXPECT_THAT(args, Contains("-no-user-config"));
    EXPECT_THAT(args, Contains("-no-reboot"));
}

TEST(CommandLine, NetworkOnlyWithATap) {
    EXPECT_THAT(line(sandbox(), true), Not(Contains("-netdev")));
    MachineSpec spec = sandbox();
    spec.tap.reset(::dup(0));
    spec.mac = "02:00:00:00:00:01";
    EXPECT_EQ(value_of(line(spec, true), "-netdev"), "tap,id=net,fd=4,vhost=off");
    EXPECT_THAT(line(spec, true), Contains("virtio-net-device,netdev=net,mac=02:00:00:00:00:01"));
}

TEST(CommandLine, EmulationIsBounded) {
    EXPECT_EQ(value_of(line(sandbox(), true), "-accel"), "tcg,tb-size=128");
    MachineSpec spec = sandbox();
    spec.accelerator = Accelerator::kvm;
    EXPECT_EQ(value_of(line(spec, true), "-accel"), "kvm") << "one that does not work is no reason to emulate quietly";
}

// The accelerator and the processor are all that may differ: whoever reads a report of one knows the other.
TEST(CommandLine, HardwareAndEmulationAreOtherwiseTheSameMachine) {
    for (const bool incoming : {false, true}) {
        MachineSpec emulated = incoming ? sandbox() : builder(), hardware = incoming ? sandbox() : builder();
        hardware.accelerator = Accelerator::kvm;
        const auto one = line(emulated, incoming), two = line(hardware, incoming);
        ASSERT_EQ(one.size(), two.size());
        std::vector<std::string> differ;
        for (std::size_t i = 0; i < one.size(); ++i)
            if (one[i] != two[i]) differ.push_back(one[i - 1]);
        EXPECT_EQ(differ, (std::vector<std::string>{"-accel", "-cpu"}));
    }
}

TEST(CommandLine, HardwareIsGivenWithoutWhatSandboxesHaveNoUseFor) {
    MachineSpec spec = builder();
    spec.accelerator = Accelerator::kvm;
    EXPECT_EQ(value_of(line(spec, false), "-cpu"), "host,vmx=off,svm=off,pmu=off,arch-capabilities=off");
    spec.cpu_model = "Skylake-Server-v4,vmx=off";
    EXPECT_EQ(value_of(line(spec, false), "-cpu"), spec.cpu_model);
}

// Interrupt controllers, timer and clock chip are left to QEMU: under KVM it takes away the clock chip and splits the
// interrupt controller, which the second one of ACPI needs.
TEST(CommandLine, MachineLeavesLegacyDevicesToQemu) {
    EXPECT_EQ(value_of(line(builder(), false), "-M"), "microvm,acpi=on,memory-backend=ram");
}

// Of each version: what it is given of what others do not know.
TEST(CommandLine, FitsTheVersionOfQemu) {
    for (const auto& [version, memory] : std::initializer_list<std::pair<QemuVersion, std::string>>{
             {{7, 2, 22}, "share=off"}, {{8, 2, 2}, "share=off,readonly=on,rom=off"}, {{10, 0, 13}, "share=off,readonly=on,rom=off"}}) {
        const auto args = line(sandbox(), true, has_readonly_backend(version));
        EXPECT_EQ(value_of(args, "-object"), "memory-backend-file,id=ram,size=512M,mem-path=/vm/memory," + memory)
            << version.text();
        // Short forms of switches are deprecated since 6.0: each has its value.
        for (const std::string& arg : args)
            for (const char* name : {"share", "readonly", "server", "wait", "vhost", "acpi", "signal"})
                EXPECT_THAT(arg + ",", Not(HasSubstr(std::string(",") + name + ","))) << version.text();
    }
}

TEST(CommandLine, WhatMakesNoSenseIsRefused) {
    auto refused = [](auto change, bool incoming = true) {
        MachineSpec spec = incoming ? sandbox() : builder();
        change(spec);
        auto out = qemu_command_line(spec, {.incoming = incoming});
        return !out && out.error().code == ErrorCode::invalid_argument;
    };
    EXPECT_TRUE(refused([](MachineSpec& s) { s.cpu_count = 0; }));
    EXPECT_TRUE(refused([](MachineSpec& s) { s.memory_mib = 1; }));
    EXPECT_TRUE(refused([](MachineSpec& s) { s.cpu_model = "max -evil"; }));
    EXPECT_TRUE(refused([](MachineSpec& s) { s.disk.backing.clear(); }));
    EXPECT_TRUE(refused([](MachineSpec& s) { s.disk.format = DiskFormat::raw; }));
    EXPECT_TRUE(refused([](MachineSpec& s) { s.memory.mapping = MemoryMapping::shared; }));
    EXPECT_TRUE(refused([](MachineSpec& s) { s.kernel.image.clear(); }, false));
    EXPECT_TRUE(refused([](MachineSpec& s) {
        s.tap.reset(::dup(0));
        s.mac = "00,script=/x";
    }));
}

}  // namespace
}  // namespace gb::engine
