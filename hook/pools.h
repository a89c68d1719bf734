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

/* Before the pool is destroyed: it is not counted any more. What is still allocated from it is not, either.
 */
void pools_remove(CUmemoryPool pool);

/* Charges what the pool will have to take from its card for BYTES. False: that does not fit. */
bool pools_charge(struct growth *growth, CUmemoryPool pool, u64 bytes);

/* After the allocation. False: the pool has taken more than was charged, and the container more than its
 * limit. */
bool pools_settle(const struct growth *growth);

/* Counts anew what this process's pools have: it may have fallen with a free or a wait. */
void pools_look(void);

/* Lets pools of CARD free what they keep for later. False: they had nothing of it. */
bool pools_trim(int card);

void pools_forget(void); /* in a child by fork */
