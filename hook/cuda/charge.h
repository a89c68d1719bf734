/* Counting around one call of the driver: charged first, taken back where the driver fails. */
#pragma once
#include "allocations.h"
#include "cards.h"

struct charge {
    int card; /* UNKNOWN_CARD: the call is not counted */
    u32 owner;
    u64 bytes;
    bool paged; /* a small allocation, of which its page counts */
};

/* A card's memory is taken by pages. Allocations up to the half of one share pages (see docs/real-card.md).
 */
#define PAGE_BYTES (2ULL << 20)
#define MOST_OF_SHARED_PAGE (1ULL << 20)

/* Charges BYTES; where they do not fit, frees what pools keep for later, and tries again. */
bool charge_bytes(int card, u64 bytes);

/* Charges an allocation of this thread's context. False: it does not fit, so the driver is not asked. */
bool charge_begin(struct charge *charge, u64 bytes);
/* The same, of memory that the driver takes from shared pages if it is small. */
bool charge_begin_paged(struct charge *charge, u64 bytes);
/* The same of CARD, whichever context is current. */
bool charge_begin_on(struct charge *charge, int card, u64 bytes);

/* After the driver's call: remembers the allocation under KEY, or takes the charge back. Returns RESULT. */
CUresult charge_settle(const struct charge *charge, CUresult result, enum kind kind, u64 key);
CUresult charge_settle_paged(const struct charge *charge, CUresult result, CUdeviceptr address);

/* After the driver's call: the allocation has BYTES, not what was charged. */
void charge_adjust(struct charge *charge, u64 bytes);

/* As the driver frees it (an ADDRESS may be from a pool): takes the allocation out, and gives it back where
 * the driver did free it. */
struct release {
    bool counted;
    struct allocation allocation;
};
void release_begin(struct release *release, enum kind kind, u64 key);
CUresult release_settle(const struct release *release, CUresult result);

/* What the driver takes for an allocation: large ones whole pages of 2 MiB. */
u64 rounded_up(u64 bytes);
