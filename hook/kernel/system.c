/* What a C library would have: files, memory, text. */
#include "system.h"

/* The compiler calls these two by itself. The empty assembler keeps it from making the loops into calls of
 * themselves. */
void *memcpy(void *restrict to, const void *restrict from, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        ((u8 *)to)[i] = ((const u8 *)from)[i];
        __asm__ volatile("");
    }
    return to;
}

void *memset(void *to, int value, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        ((u8 *)to)[i] = (u8)value;
        __asm__ volatile("");
    }
    return to;
}

long read_file(const char *path, char *text, size_t size) {
    long file = CALL4(openat, HERE, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
    if (file < 0) return file;
    size_t length = 0;
    long got = 0;
    while (length < size - 1) {
        got = CALL4(pread, file, text + length, size - 1 - length, length);
        if (got == -EINTR) continue;
        if (got <= 0) break;
        length += (size_t)got;
    }
    CALL1(close, file);
    text[length] = 0;
    return got < 0 ? got : (long)length;
}

void *map_memory(size_t bytes) {
    enum { READ_AND_WRITE = 3, PRIVATE_AND_ANONYMOUS = 0x22 };
    long memory = system_call(SYS_mmap, 0, (long)bytes, READ_AND_WRITE, PRIVATE_AND_ANONYMOUS, -1, 0);
    return memory < 0 && memory > -4096 ? NULL : (void *)memory;
}

void unmap_memory(void *memory, size_t bytes) { CALL2(munmap, memory, bytes); }

size_t length_of(const char *text) {
    size_t length = 0;
    while (text[length]) length++;
    return length;
}

bool same_text(const char *one, const char *other) {
    while (*one && *one == *other) one++, other++;
    return *one == *other;
}

bool same_bytes(const void *one, const void *other, size_t bytes) {
    const u8 *left = one, *right = other;
    for (size_t i = 0; i < bytes; i++)
        if (left[i] != right[i]) return false;
    return true;
}

char *append_text(char *end, const char *text) {
    while (*text) *end++ = *text++;
    *end = 0;
    return end;
}

char *append_number(char *end, u64 number) {
    char digits[21], *at = digits + sizeof digits - 1;
    *at = 0;
    do *--at = (char)('0' + number % 10);
    while (number /= 10);
    return append_text(end, at);
}
