/* The limits of the container, as the plugin wrote them:
 *
 *   container 0123456789abcdef0123456789abcdef
 *   context 629145600
 *   GPU-01234567-89ab-cdef-0123-456789abcdef 4294967296
 *
 * Exactly these lines in this order, each ended by a newline: identity of the container's ledger, bytes
 * that a context counts, and bytes of each card. */
#pragma once
#include "types.h"

#ifndef HOOK_LIMITS
#define HOOK_LIMITS "/etc/gpushare/limits"
#endif

#define IDENTITY_LENGTH 32
#define MOST_CARDS 64
#define LONGEST_UUID 64
#define LONGEST_LIMITS 8192

struct limit {
    u8 uuid[16];
    bool cuda; /* false: not a UUID of CUDA's, so no device has it */
    u64 bytes;
};
struct limits {
    char identity[IDENTITY_LENGTH + 1];
    u64 context;
    int count;
    struct limit cards[MOST_CARDS];
};

/* False: the text is not exactly as above, and *limits means nothing. */
bool limits_parse(struct limits *limits, const char *text, size_t length);

/* The container's limits, or NULL where it has none (no file, or one that is not as above). The file is
 * read once in a process. */
const struct limits *limits_of_container(void);
void limits_forget(void); /* in a child by fork */
