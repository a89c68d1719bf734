/* What this process has allocated: a table from what the driver has answered to bytes and card. */
#pragma once
#include "types.h"

/* Numbers of different kinds may be equal. */
enum kind {
    NOTHING,
    ADDRESS, /* of cuMemAlloc and its likes; "share" is 0, or 1 more than the number of its page */
    PAGE,    /* that small ones share; "share" says how many */
    POOLED,  /* an address; "share" is the number of its pool, which counts the bytes; see pools.h */
    ARRAY,
    CONTEXT, /* of cuCtxCreate */
    HANDLE,  /* of cuMemCreate; "share" is its memory, "bytes" how often it is to be released */
    MAPPING, /* an address; "share" is the memory, "bytes" the length */
    MEMORY,  /* of cuMemCreate; "share" says how many handles and mappings there are */
};

struct allocation {
    u64 key;
    u64 bytes;
    u64 share;
    u32 owner; /* the context that it ends with; see contexts.h */
    short card;
    u8 kind;
};

/* False: there is no memory for it, so it is not counted. REPLACED may be NULL: what was under the same key,
 * or of kind NOTHING. */
bool allocations_add(const struct allocation *allocation, struct allocation *replaced);

/* Takes it out of the table. It is taken out before the driver frees it: from then on the driver may give the
 * same address to another thread. */
bool allocations_take(enum kind kind, u64 key, struct allocation *taken);

/* Adds 1 to "share" of what has the same key, else adds this one. False: it was added. */
bool allocations_hold(const struct allocation *allocation);

bool allocations_find(enum kind kind, u64 key, struct allocation *found);

/* Changes the field "share" or "bytes" of one that is there; returns its new value. */
u64 allocations_add_share(enum kind kind, u64 key, i64 change);
u64 allocations_add_bytes(enum kind kind, u64 key, i64 change);

/* The mapping that ADDRESS lies in. Looks at all of them. */
bool allocations_find_mapping(u64 address, struct allocation *found);

/* Takes out one mapping that begins within BYTES from ADDRESS. */
bool allocations_take_mapping(u64 address, u64 bytes, struct allocation *taken);

/* Takes out all of CARD that end with the context OWNER; returns their bytes. */
u64 allocations_take_of(u32 owner, int card);

void allocations_forget(void); /* in a child by fork */
