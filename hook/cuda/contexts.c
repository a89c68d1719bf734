/* Contexts: each counts as many bytes as the limits file says, and allocations end with theirs. */
#include "contexts.h"
#include "allocations.h"
#include "cards.h"
#include "charge.h"
#include "driver.h"
#include "ledger.h"
#include "limits.h"

/* Whether the primary context of a card is counted. */
static bool primary[MOST_CARDS];
static u32 last_owner = PRIMARY; /* PRIMARY: the program has made no context itself */

void contexts_forget(void) {
    for (int i = 0; i < MOST_CARDS; i++) primary[i] = false;
}

enum primary_count { COUNTED_BEFORE, COUNTED_NOW, NO_ROOM };

/* A card that is not listed has no flag; a context there counts, too, and does not fit. */
static enum primary_count count_primary(int card) {
    u64 bytes = limits_of_container()->context;
    if (card < 0) return charge_bytes(card, bytes) ? COUNTED_BEFORE : NO_ROOM;
    if (__atomic_exchange_n(&primary[card], true, __ATOMIC_ACQ_REL)) return COUNTED_BEFORE;
    if (charge_bytes(card, bytes)) return COUNTED_NOW;
    __atomic_store_n(&primary[card], false, __ATOMIC_RELEASE);
    return NO_ROOM;
}

static void uncount_primary(int card) {
    if (card >= 0 && __atomic_exchange_n(&primary[card], false, __ATOMIC_ACQ_REL))
        ledger_give_back(card, limits_of_container()->context);
}

bool contexts_use(int card, u32 *owner) {
    CUcontext context = NULL;
    struct allocation created;
    *owner = PRIMARY;
    if (__atomic_load_n(&last_owner, __ATOMIC_RELAXED) != PRIMARY && HAS(cuCtxGetCurrent) &&
        REAL(cuCtxGetCurrent)(&context) == CUDA_SUCCESS &&
        allocations_find(CONTEXT, (u64)context, &created)) {
        *owner = created.owner;
        return true;
    }
    return count_primary(card) != NO_ROOM;
}

/* True: the driver says that the device has no primary context. */
static bool is_inactive(CUdevice device) {
    unsigned flags;
    int active;
    return HAS(cuDevicePrimaryCtxGetState) &&
           REAL(cuDevicePrimaryCtxGetState)(device, &flags, &active) == CUDA_SUCCESS && !active;
}

/* After a call that may have ended the device's primary context, with all that was allocated in it. */
static void primary_may_have_ended(CUdevice device) {
    int card = card_of_device(device);
    if (card < 0 || !is_inactive(device)) return;
    ledger_give_back(card, allocations_take_of(PRIMARY, card));
    uncount_primary(card);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    int card = driver_begin() ? card_of_device(device) : UNKNOWN_CARD;
    enum primary_count counted = card == UNKNOWN_CARD ? COUNTED_BEFORE : count_primary(card);
    if (counted == NO_ROOM) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuDevicePrimaryCtxRetain)(context, device);
    if (result != CUDA_SUCCESS && counted == COUNTED_NOW && is_inactive(device)) uncount_primary(card);
    return result;
}

static CUresult after_primary(CUresult result, CUdevice device, bool limited) {
    if (limited && result == CUDA_SUCCESS) primary_may_have_ended(device);
    return result;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
    bool limited = driver_begin();
    return after_primary(REAL(cuDevicePrimaryCtxRelease)(device), device, limited);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    bool limited = driver_begin();
    return after_primary(REAL(cuDevicePrimaryCtxRelease_v2)(device), device, limited);
}

CUresult cuDevicePrimaryCtxReset(CUdevice device) {
    bool limited = driver_begin();
    return after_primary(REAL(cuDevicePrimaryCtxReset)(device), device, limited);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
    bool limited = driver_begin();
    return after_primary(REAL(cuDevicePrimaryCtxReset_v2)(device), device, limited);
}

/* A green context is a part of the primary one, and keeps it. */
CUresult cuGreenCtxCreate(CUgreenCtx *context, void *resources, CUdevice device, unsigned flags) {
    int card = driver_begin() ? card_of_device(device) : UNKNOWN_CARD;
    enum primary_count counted = card == UNKNOWN_CARD ? COUNTED_BEFORE : count_primary(card);
    if (counted == NO_ROOM) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuGreenCtxCreate)(context, resources, device, flags);
    if (result != CUDA_SUCCESS && counted == COUNTED_NOW && is_inactive(device)) uncount_primary(card);
    return result;
}

/* Which device it was is not told: all that are counted are looked at. */
CUresult cuGreenCtxDestroy(CUgreenCtx context) {
    bool limited = driver_begin();
    CUresult result = REAL(cuGreenCtxDestroy)(context);
    int count = 0;
    if (limited && result == CUDA_SUCCESS && HAS(cuDeviceGetCount)) REAL(cuDeviceGetCount)(&count);
    for (CUdevice device = 0; device < count; device++) {
        int card = card_of_device(device);
        if (card >= 0 && __atomic_load_n(&primary[card], __ATOMIC_ACQUIRE)) primary_may_have_ended(device);
    }
    return result;
}

/* Called before the driver makes a context. False: there is no room for it. */
static bool begin_creation(CUdevice device, struct charge *charge) {
    *charge = (struct charge){.card = driver_begin() ? card_of_device(device) : UNKNOWN_CARD};
    if (charge->card == UNKNOWN_CARD) return true;
    charge->bytes = limits_of_container()->context;
    charge->owner = __atomic_add_fetch(&last_owner, 1, __ATOMIC_RELAXED);
    return charge_bytes(charge->card, charge->bytes);
}

CUresult cuCtxCreate(CUcontext *context, unsigned flags, CUdevice device) {
    struct charge charge;
    if (!begin_creation(device, &charge)) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuCtxCreate)(context, flags, device);
    return charge_settle(&charge, result, CONTEXT, context ? (u64)*context : 0);
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device) {
    struct charge charge;
    if (!begin_creation(device, &charge)) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuCtxCreate_v2)(context, flags, device);
    return charge_settle(&charge, result, CONTEXT, context ? (u64)*context : 0);
}

CUresult cuCtxCreate_v3(CUcontext *context, void *affinities, int count, unsigned flags, CUdevice device) {
    struct charge charge;
    if (!begin_creation(device, &charge)) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuCtxCreate_v3)(context, affinities, count, flags, device);
    return charge_settle(&charge, result, CONTEXT, context ? (u64)*context : 0);
}

CUresult cuCtxCreate_v4(CUcontext *context, void *parameters, unsigned flags, CUdevice device) {
    struct charge charge;
    if (!begin_creation(device, &charge)) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuCtxCreate_v4)(context, parameters, flags, device);
    return charge_settle(&charge, result, CONTEXT, context ? (u64)*context : 0);
}

typedef CUresult destroy_function(CUcontext context);

static CUresult destroy(destroy_function *real, CUcontext context, bool limited) {
    struct allocation created;
    if (!limited || !allocations_take(CONTEXT, (u64)context, &created)) return real(context);
    CUresult result = real(context);
    if (result == CUDA_SUCCESS)
        ledger_give_back(created.card, created.bytes + allocations_take_of(created.owner, created.card));
    else
        allocations_add(&created, NULL);
    return result;
}

CUresult cuCtxDestroy(CUcontext context) {
    bool limited = driver_begin();
    return destroy(REAL(cuCtxDestroy), context, limited);
}

CUresult cuCtxDestroy_v2(CUcontext context) {
    bool limited = driver_begin();
    return destroy(REAL(cuCtxDestroy_v2), context, limited);
}

CUresult cuCtxDetach(CUcontext context) {
    bool limited = driver_begin();
    return destroy(REAL(cuCtxDetach), context, limited);
}
