/* Counting around one call of the driver. */
#include "charge.h"
#include "contexts.h"
#include "driver.h"
#include "ledger.h"
#include "limits.h"
#include "pools.h"

u64 rounded_up(u64 bytes) {
    return bytes <= MOST_OF_SHARED_PAGE || bytes > ~0ULL - PAGE_BYTES
               ? bytes
               : (bytes + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
}

bool charge_bytes(int card, u64 bytes) {
    if (ledger_charge(card, bytes)) return true;
    return pools_trim(card) && ledger_charge(card, bytes);
}

bool charge_begin_on(struct charge *charge, int card, u64 bytes) {
    *charge = (struct charge){.card = card, .bytes = rounded_up(bytes)};
    return card == UNKNOWN_CARD || charge_bytes(card, charge->bytes);
}

/* False: the context does not fit. */
static bool find_place(struct charge *charge) {
    *charge = (struct charge){.card = driver_begin() ? card_of_thread() : UNKNOWN_CARD};
    return charge->card == UNKNOWN_CARD || contexts_use(charge->card, &charge->owner);
}

bool charge_begin(struct charge *charge, u64 bytes) {
    if (!find_place(charge)) return false;
    charge->bytes = rounded_up(bytes);
    return charge->card == UNKNOWN_CARD || charge_bytes(charge->card, charge->bytes);
}

/* Charges a page: whether the driver will need one more is known afterwards. */
bool charge_begin_paged(struct charge *charge, u64 bytes) {
    if (bytes > MOST_OF_SHARED_PAGE) return charge_begin(charge, bytes);
    if (!find_place(charge)) return false;
    charge->paged = true;
    charge->bytes = PAGE_BYTES;
    return charge->card == UNKNOWN_CARD || charge_bytes(charge->card, charge->bytes);
}

static void drop_page(u64 number) {
    struct allocation page;
    if (allocations_add_share(PAGE, number, -1) == 0 && allocations_take(PAGE, number, &page))
        ledger_give_back(page.card, page.bytes);
}

static void give_back(const struct allocation *freed) {
    if (freed->kind == ADDRESS && freed->share)
        drop_page(freed->share - 1);
    else
        ledger_give_back(freed->card, freed->bytes);
}

static bool remember(const struct allocation *made) {
    struct allocation stale;
    bool added = allocations_add(made, &stale);
    /* The driver had freed what was there, by a way that the hook does not see. */
    if (stale.kind) give_back(&stale);
    return added;
}

CUresult charge_settle(const struct charge *charge, CUresult result, enum kind kind, u64 key) {
    struct allocation made = {.key = key, .bytes = charge->bytes, .owner = charge->owner};
    if (charge->card == UNKNOWN_CARD) return result;
    made.card = (short)charge->card;
    made.kind = (u8)kind;
    if (result != CUDA_SUCCESS || !key || !remember(&made)) ledger_give_back(charge->card, charge->bytes);
    return result;
}

CUresult charge_settle_paged(const struct charge *charge, CUresult result, CUdeviceptr address) {
    if (!charge->paged || charge->card == UNKNOWN_CARD || result != CUDA_SUCCESS || !address)
        return charge_settle(charge, result, ADDRESS, address);
    struct allocation page = {.key = address / PAGE_BYTES, .bytes = PAGE_BYTES, .share = 1, .kind = PAGE};
    struct allocation made = {.key = address, .share = page.key + 1, .kind = ADDRESS};
    page.card = made.card = (short)charge->card;
    page.owner = made.owner = charge->owner;
    if (allocations_hold(&page)) ledger_give_back(charge->card, charge->bytes);
    if (!remember(&made)) drop_page(page.key);
    return result;
}

void charge_adjust(struct charge *charge, u64 bytes) {
    if (charge->card == UNKNOWN_CARD || charge->paged) return;
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
        give_back(freed);
    }
    return result;
}
