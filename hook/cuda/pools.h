/* Pools of memory: a pool counts as much as it has taken from its card, used or kept for later. */
#pragma once
#include "types.h"

/* An allocation from a pool. */
struct growth {
    CUmemoryPool pool; /* NULL: not counted */
    u64 bytes;         /* charged for it */
};

/* Counts a pool of CARD from now on, if there is room in the table. */
void pools_add(CUmemoryPool pool, int card);

/* Before the pool is destroyed: from now on the driver is not asked for it. Returns its number, or 0. */
u64 pools_leave(CUmemoryPool pool);
/* After that: a destroyed pool (NULL) counts as before as long as something is allocated from it. */
void pools_left(u64 number, CUmemoryPool still_there);

/* What was allocated from the pool of this number is freed. */
void pools_freed(u64 number);

/* Charges what the pool will have to take from its card for BYTES. False: that does not fit. */
bool pools_charge(struct growth *growth, CUmemoryPool pool, u64 bytes);

/* After the allocation; ADDRESS 0: it failed. False: the pool has taken more than was charged, and the
 * container more than its limit. */
bool pools_settle(const struct growth *growth, CUdeviceptr address);

/* Counts anew what this process's pools have: it may have fallen with a free or a wait. */
void pools_look(void);

/* Lets pools of CARD free what they keep for later. False: they had nothing of it. */
bool pools_trim(int card);

void pools_forget(void); /* in a child by fork */
