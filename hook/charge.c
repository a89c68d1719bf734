/* Counting around one call of the driver. */
#include "charge.h"
#include "contexts.h"
#include "driver.h"
#include "ledger.h"
#include "limits.h"
#include "pools.h"

#define PAGE (2ULL << 20)

/* Smaller ones share pages. */
u64 rounded_up(u64 bytes) {
    return bytes < PAGE || bytes > ~0ULL - PAGE ? bytes : (bytes + PAGE - 1) & ~(PAGE - 1);
}

bool charge_bytes(int card, u64 bytes) {
    if (ledger_charge(card, bytes)) return true;
    return pools_trim(card) && ledger_charge(card, bytes);
}

bool charge_begin_on(struct charge *charge, int card, u64 bytes) {
    *charge = (struct charge){.card = card, .bytes = rounded_up(bytes)};
    if (card == UNKNOWN_CARD || charge_bytes(card, charge->bytes)) return true;
    /* So that a program gets all that cuMemGetInfo says is free. */
    charge->bytes = bytes;
    return rounded_up(bytes) != bytes && ledger_charge(card, bytes);
}

bool charge_begin(struct charge *charge, u64 bytes) {
    *charge = (struct charge){.card = UNKNOWN_CARD};
    int card = driver_begin() ? card_of_thread() : UNKNOWN_CARD;
    u32 owner = PRIMARY;
    if (card == UNKNOWN_CARD) return true;
    if (!contexts_use(card, &owner) || !charge_begin_on(charge, card, bytes)) return false;
    charge->owner = owner;
    return true;
}

CUresult charge_settle(const struct charge *charge, CUresult result, enum kind kind, u64 key) {
    struct allocation stale;
    if (charge->card == UNKNOWN_CARD) return result;
    if (result != CUDA_SUCCESS || !key) {
        ledger_give_back(charge->card, charge->bytes);
        return result;
    }
    struct allocation made = {.key = key, .bytes = charge->bytes, .owner = charge->owner};
    made.card = (short)charge->card;
    made.kind = (u8)kind;
    if (!allocations_add(&made, &stale)) ledger_give_back(charge->card, charge->bytes);
    /* The driver had freed what was there, by a way that the hook does not see. */
    if (stale.kind) ledger_give_back(stale.card, stale.bytes);
    return result;
}

void charge_adjust(struct charge *charge, u64 bytes) {
    if (charge->card == UNKNOWN_CARD) return;
    if (bytes > charge->bytes)
        ledger_charge_anyway(charge->card, bytes - charge->bytes);
    else
        ledger_give_back(charge->card, charge->bytes - bytes);
    charge->bytes = bytes;
}

void release_begin(struct release *release, enum kind kind, u64 key) {
    release->counted =
        driver_begin() && (allocations_take(kind, key, &release->allocation) ||
                           (kind == ADDRESS && allocations_take(POOLED, key, &release->allocation)));
}

CUresult release_settle(const struct release *release, CUresult result) {
    const struct allocation *freed = &release->allocation;
    if (!release->counted) return result;
    if (result != CUDA_SUCCESS) {
        allocations_add(freed, NULL);
    } else if (freed->kind == POOLED) {
        pools_freed(freed->share);
        pools_look();
    } else {
        ledger_give_back(freed->card, freed->bytes);
    }
    return result;
}
