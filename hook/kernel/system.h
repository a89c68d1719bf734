/* Calls of the kernel without a C library: an error is a negative number, errno is untouched. */
#pragma once
#include "types.h"

#if defined(__x86_64__)
enum {
    SYS_close = 3,
    SYS_fstat = 5,
    SYS_mmap = 9,
    SYS_munmap = 11,
    SYS_sigprocmask = 14,
    SYS_pread = 17,
    SYS_pwrite = 18,
    SYS_sched_yield = 24,
    SYS_nanosleep = 35,
    SYS_getpid = 39,
    SYS_kill = 62,
    SYS_fcntl = 72,
    SYS_flock = 73,
    SYS_fchmod = 91,
    SYS_sigtimedwait = 128,
    SYS_futex = 202,
    SYS_openat = 257,
    SYS_readlinkat = 267,
    SYS_faccessat = 269
};
#define O_NOFOLLOW 0400000
static inline long system_call(long number, long a, long b, long c, long d, long e, long f) {
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}
struct file_status {
    u64 device, inode, links;
    u32 mode, user, group, pad;
    u64 special;
    i64 size;
    i64 rest[20];
};
#elif defined(__aarch64__)
enum {
    SYS_fcntl = 25,
    SYS_flock = 32,
    SYS_faccessat = 48,
    SYS_fchmod = 52,
    SYS_openat = 56,
    SYS_close = 57,
    SYS_pread = 67,
    SYS_pwrite = 68,
    SYS_readlinkat = 78,
    SYS_fstat = 80,
    SYS_futex = 98,
    SYS_nanosleep = 101,
    SYS_sched_yield = 124,
    SYS_kill = 129,
    SYS_sigprocmask = 135,
    SYS_sigtimedwait = 137,
    SYS_getpid = 172,
    SYS_munmap = 215,
    SYS_mmap = 222
};
#define O_NOFOLLOW 0100000
static inline long system_call(long number, long a, long b, long c, long d, long e, long f) {
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d, x4 __asm__("x4") = e, x5 __asm__("x5") = f;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
}
struct file_status {
    u64 device, inode;
    u32 mode, links, user, group;
    u64 special, pad;
    i64 size;
    i64 rest[20];
};
#else
#error "the hook knows x86_64 and aarch64"
#endif

#define CALL1(name, a) system_call(SYS_##name, (long)(a), 0, 0, 0, 0, 0)
#define CALL2(name, a, b) system_call(SYS_##name, (long)(a), (long)(b), 0, 0, 0, 0)
#define CALL3(name, a, b, c) system_call(SYS_##name, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define CALL4(name, a, b, c, d) system_call(SYS_##name, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)

#define EINTR 4
#define EAGAIN 11
#define ENOENT 2
#define ESRCH 3
#define EEXIST 17
#define ENOMEM 12
#define ENFILE 23
#define EMFILE 24
#define EFBIG 27
#define SIGXFSZ 25

#define HERE (-100) /* the working folder, for paths that are absolute anyway */
#define O_RDONLY 0
#define O_RDWR 02
#define O_CREAT 0100
#define O_EXCL 0200
#define O_NOCTTY 0400
#define O_NONBLOCK 04000
#define O_CLOEXEC 02000000

#define F_DUPFD_CLOEXEC 1030
#define F_OFD_GETLK 36
#define F_OFD_SETLK 37
#define F_WRLCK 1
#define F_UNLCK 2
struct file_lock {
    short kind, whence;
    i64 start, length;
    int pid;
};
#define LOCK_EX 2
#define LOCK_NB 4
#define LOCK_UN 8

static inline bool is_regular(const struct file_status *status) {
    return (status->mode & 0170000) == 0100000;
}

static inline void sleep_nanoseconds(u64 nanoseconds) {
    u64 time[2] = {nanoseconds / 1000000000, nanoseconds % 1000000000};
    CALL2(nanosleep, time, NULL);
}

/* Takes back a signal that waits for this thread. */
static inline void discard_signal(int number) {
    u64 set = 1ULL << (number - 1), at_once[2] = {0, 0};
    CALL4(sigtimedwait, &set, NULL, at_once, sizeof set);
}

/* Reads at most SIZE - 1 bytes of a file and ends them with 0. Returns their number, or an error. */
long read_file(const char *path, char *text, size_t size);

/* NULL: there is no memory. */
void *map_memory(size_t bytes);
void unmap_memory(void *memory, size_t bytes);

void *memcpy(void *restrict to, const void *restrict from, size_t bytes);
void *memset(void *to, int value, size_t bytes);
size_t length_of(const char *text);
bool same_text(const char *one, const char *other);
bool same_bytes(const void *one, const void *other, size_t bytes);
char *append_text(char *end, const char *text); /* returns the new end */
char *append_number(char *end, u64 number);
