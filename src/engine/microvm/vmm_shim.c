/*
 * Loaded into QEMU before 8.2 (LD_PRELOAD). That QEMU opens the file of a private memory backend for writing
 * even though it never writes to it; the image belongs to a template and is shared by many sandboxes, so it
 * is read-only in the jail and the open would fail. The shim opens that one path for reading. It is no
 * security boundary: the image's mode, owner and mount are.
 */
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>

static long open_raw(const char* path, int flags, int mode) {
    register long r10 __asm__("r10") = mode;
    long result = SYS_openat;
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"((long)AT_FDCWD), "S"(path), "d"((long)flags), "r"(r10)
                     : "rcx", "r11", "memory");
    return result;
}

static int is_memory_image(const char* path) {
    static const char kPath[] = "/vm/memory";
    for (unsigned i = 0; i < sizeof kPath; ++i)
        if (path[i] != kPath[i]) return 0;
    return 1;
}

static int open_file(const char* path, int flags, int mode) {
    long fd = open_raw(path, flags | O_LARGEFILE, mode);
    if (fd == -EACCES || fd == -EROFS || fd == -EPERM)
        if (is_memory_image(path) && (flags & O_ACCMODE) == O_RDWR)
            fd = open_raw(path, (flags & ~O_ACCMODE) | O_RDONLY | O_LARGEFILE, 0);
    if (fd >= 0) return (int)fd;
    errno = (int)-fd;
    return -1;
}

__attribute__((visibility("default"))) int open64(const char* path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    int mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(arguments, int) : 0;
    va_end(arguments);
    return open_file(path, flags, mode);
}

__attribute__((visibility("default"))) int __open64_2(const char* path, int flags) {
    return open_file(path, flags, 0);
}

__attribute__((visibility("default"))) int open(const char* path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    int mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(arguments, int) : 0;
    va_end(arguments);
    return open_file(path, flags, mode);
}

__attribute__((visibility("default"))) int __open_2(const char* path, int flags) {
    return open_file(path, flags, 0);
}
