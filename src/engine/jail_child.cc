// SPDX-License-Identifier: Apache-2.0
// Compiled without sanitizers, and with system calls by number only, which no sanitizer intercepts: their
// bookkeeping does not survive a child that shares the parent's memory.
#include "engine/jail_child.h"

#include <cerrno>
#include <cstdint>
#include <type_traits>

#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <linux/securebits.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

namespace gb::engine {
namespace {

constexpr std::size_t kStackBytes = 64 * 1024;

template <class T>
long word(T value) {
    if constexpr (std::is_null_pointer_v<T>) {
        return 0;
    } else if constexpr (std::is_pointer_v<T>) {
        return reinterpret_cast<long>(value);
    } else {
        return static_cast<long>(value);
    }
}

template <class... Arguments>
long sys(long number, Arguments... arguments) {
    return ::syscall(number, word(arguments)...);
}

[[noreturn]] void give_up(ChildPlan& plan, JailStep step, int err = errno) {
    plan.failed_step = step;
    plan.failed_errno = err;
    for (;;) sys(SYS_exit_group, 127);
}

// A bind mount takes its flags only from a second, remounting call.
bool bind(const char* source, const char* target, unsigned long flags) {
    return sys(SYS_mount, source, target, nullptr, MS_BIND, nullptr) == 0 &&
           sys(SYS_mount, nullptr, target, nullptr, MS_BIND | MS_REMOUNT | flags, nullptr) == 0;
}

void enter_root(ChildPlan& plan) {
    if (sys(SYS_mount, nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
        give_up(plan, JailStep::mount_namespace);
    if (!bind(plan.root, plan.root, MS_RDONLY | MS_NOSUID | MS_NODEV) || sys(SYS_chdir, plan.root) != 0)
        give_up(plan, JailStep::root);
    for (std::size_t i = 0; i < plan.mount_count; ++i) {
        plan.failed_mount = i;
        const ChildMount& m = plan.mounts[i];
        if (!bind(m.source, m.target, m.flags)) give_up(plan, JailStep::bind);
    }
    if (sys(SYS_mount, "devices", "dev", "tmpfs", MS_NOSUID | MS_NOEXEC, "size=4k,nr_inodes=16,mode=0755") !=
        0)
        give_up(plan, JailStep::devices);
    for (std::size_t i = 0; i < plan.device_count; ++i) {
        const ChildDevice& d = plan.devices[i];
        if (sys(SYS_mknod, d.path, S_IFCHR | 0666, d.number) != 0 || sys(SYS_chmod, d.path, 0666) != 0)
            give_up(plan, JailStep::devices);
    }
    if (sys(SYS_mount, nullptr, "dev", nullptr, MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NOEXEC, nullptr) != 0)
        give_up(plan, JailStep::devices);
    // pivot_root(".", ".") stacks the old root upon the new one; taking it away leaves the new one
    // (pivot_root(2)).
    if (sys(SYS_pivot_root, ".", ".") != 0 || sys(SYS_umount2, ".", MNT_DETACH) != 0 ||
        sys(SYS_chdir, "/") != 0)
        give_up(plan, JailStep::pivot);
}

void set_limit(ChildPlan& plan, __rlimit_resource_t resource, rlim_t value) {
    rlimit limit{value, value};
    if (sys(SYS_setrlimit, resource, &limit) != 0) give_up(plan, JailStep::limits);
}

void drop_privileges(ChildPlan& plan) {
    if (sys(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) give_up(plan, JailStep::privileges);
    for (unsigned long cap = 0;; ++cap) {
        if (sys(SYS_prctl, PR_CAPBSET_DROP, cap, 0, 0, 0) == 0) continue;
        if (errno == EINVAL) break;  // past the last capability of this kernel
        give_up(plan, JailStep::privileges);
    }
    sys(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    constexpr unsigned long kBits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP_LOCKED |
                                    SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
                                    SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
    if (sys(SYS_prctl, PR_SET_SECUREBITS, kBits, 0, 0, 0) != 0) give_up(plan, JailStep::privileges);
    // The raw calls change this task alone; the C library's would ask the parent's threads to follow.
    if (sys(SYS_setgroups, 0, nullptr) != 0 || sys(SYS_setresgid, plan.gid, plan.gid, plan.gid) != 0 ||
        sys(SYS_setresuid, plan.uid, plan.uid, plan.uid) != 0)
        give_up(plan, JailStep::identity);
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct none[2] = {};
    if (sys(SYS_capset, &header, none) != 0) give_up(plan, JailStep::capabilities);
}

void place_descriptors(ChildPlan& plan) {
    // First all out of the way, then each to its place: no place can be taken by one that still has to move.
    int moved[kMaxChildDescriptors];
    const int count = static_cast<int>(plan.descriptor_count);
    for (int i = 0; i < count; ++i) {
        moved[i] = static_cast<int>(sys(SYS_fcntl, plan.descriptors[i], F_DUPFD_CLOEXEC, count));
        if (moved[i] < 0) give_up(plan, JailStep::descriptors);
    }
    for (int i = 0; i < count; ++i)
        if (sys(SYS_dup3, moved[i], i, 0) < 0) give_up(plan, JailStep::descriptors);
    if (sys(SYS_close_range, static_cast<unsigned>(count), ~0U, 0U) != 0)
        give_up(plan, JailStep::descriptors);
}

[[noreturn]] void child(void* argument) {
    ChildPlan& plan = *static_cast<ChildPlan*>(argument);
    if (plan.netns_fd >= 0 ? sys(SYS_setns, plan.netns_fd, CLONE_NEWNET) != 0
                           : sys(SYS_unshare, CLONE_NEWNET) != 0)
        give_up(plan, JailStep::network);
    sys(SYS_sethostname, "glovebox", 8UL);
    enter_root(plan);
    sys(SYS_setsid);
    sys(SYS_umask, 0077);
    set_limit(plan, RLIMIT_CORE, 0);
    set_limit(plan, RLIMIT_MSGQUEUE, 0);
    set_limit(plan, RLIMIT_MEMLOCK, 0);
    place_descriptors(plan);
    set_limit(plan, RLIMIT_NOFILE, plan.open_files_max);
    drop_privileges(plan);
    // Behind the change of the user, which forgets it.
    if (plan.end_with_parent) sys(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    std::uint64_t no_signals = 0;
    sys(SYS_rt_sigprocmask, SIG_SETMASK, &no_signals, nullptr, sizeof no_signals);
    sys(SYS_execve, plan.argv[0], const_cast<char* const*>(plan.argv), const_cast<char* const*>(plan.env));
    give_up(plan, JailStep::exec);
}

// clone3 with a new stack returns twice, and in the child without the frame that called it: hence assembly.
// The child's first instruction after the system call calls `entry(argument)`, which never returns.
long clone3_on_new_stack(clone_args& args, void (*entry)(void*), void* argument) {
#if defined(__x86_64__)
    long result = SYS_clone3;
    register void (*r8)(void*) asm("r8") = entry;
    register void* r9 asm("r9") = argument;
    asm volatile(
        "syscall\n"
        "test %%rax, %%rax\n"
        "jnz 1f\n"
        "xor %%ebp, %%ebp\n"
        "mov %%r9, %%rdi\n"
        "call *%%r8\n"
        "hlt\n"
        "1:\n"
        : "+a"(result)
        : "D"(&args), "S"(sizeof args), "r"(r8), "r"(r9)
        : "rcx", "r11", "memory", "cc");
    return result;
#elif defined(__aarch64__)
    register long result asm("x0") = reinterpret_cast<long>(&args);
    register std::size_t size asm("x1") = sizeof args;
    register long number asm("x8") = SYS_clone3;
    register void (*x9)(void*) asm("x9") = entry;
    register void* x10 asm("x10") = argument;
    asm volatile(
        "svc #0\n"
        "cbnz x0, 1f\n"
        "mov x29, xzr\n"
        "mov x30, xzr\n"
        "mov x0, x10\n"
        "blr x9\n"
        "brk #1\n"
        "1:\n"
        : "+r"(result)
        : "r"(size), "r"(number), "r"(x9), "r"(x10)
        : "memory", "cc");
    return result;
#else
#error "the jail's clone3 call is written for x86-64 and arm64; other processors need theirs here"
#endif
}

}  // namespace

const char* jail_step_name(JailStep step) {
    switch (step) {
        case JailStep::none:
            return "nothing";
        case JailStep::network:
            return "enter the network namespace";
        case JailStep::mount_namespace:
            return "make mounts private";
        case JailStep::root:
            return "mount the root";
        case JailStep::bind:
            return "mount";
        case JailStep::devices:
            return "make devices";
        case JailStep::pivot:
            return "change the root";
        case JailStep::limits:
            return "set resource limits";
        case JailStep::privileges:
            return "give up privileges";
        case JailStep::identity:
            return "change the user";
        case JailStep::capabilities:
            return "drop capabilities";
        case JailStep::descriptors:
            return "place descriptors";
        case JailStep::exec:
            return "exec";
    }
    return "unknown step";
}

pid_t clone_into_jail(ChildPlan& plan, int& pidfd) {
    void* stack =
        ::mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED) return -errno;
    plan.failed_step = JailStep::none;
    plan.failed_errno = 0;
    plan.failed_mount = 0;
    pidfd = -1;

    clone_args args{};
    args.flags = CLONE_VM | CLONE_VFORK | CLONE_PIDFD | CLONE_CLEAR_SIGHAND | CLONE_NEWPID | CLONE_NEWNS |
                 CLONE_NEWIPC | CLONE_NEWUTS;
    args.pidfd = reinterpret_cast<std::uint64_t>(&pidfd);
    args.exit_signal = SIGCHLD;
    args.stack = reinterpret_cast<std::uint64_t>(stack);
    args.stack_size = kStackBytes;
    if (plan.cgroup_folder >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = static_cast<std::uint64_t>(plan.cgroup_folder);
    }

    // A signal handler that ran in the child would run on the parent's data.
    sigset_t all, before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    long result = clone3_on_new_stack(args, child, &plan);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    ::munmap(stack, kStackBytes);
    return static_cast<pid_t>(result);
}

}  // namespace gb::engine
