/* What programs are told of a card: the container's share of it. And the driver's functions by name. */
#include "cards.h"
#include "charge.h"
#include "driver.h"
#include "ledger.h"
#include "limits.h"
#include "pools.h"

/* Whole pages, so that a program gets all that it is told. */
static u64 available_of(int card) {
    pools_look();
    return ledger_available(card) & ~(PAGE_BYTES - 1);
}

static u64 limit_of(int card) { return card == UNLISTED ? 0 : limits_of_container()->cards[card].bytes; }

#define LOWER(value, bound)                                                                                  \
    do {                                                                                                     \
        if ((value) && *(value) > (bound)) *(value) = (__typeof__(*(value)))(bound);                         \
    } while (0)

CUresult cuDeviceTotalMem(unsigned *bytes, CUdevice device) {
    int card = driver_begin() ? card_of_device(device) : UNKNOWN_CARD;
    CUresult result = REAL(cuDeviceTotalMem)(bytes, device);
    if (result == CUDA_SUCCESS && card != UNKNOWN_CARD) LOWER(bytes, limit_of(card));
    return result;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
    int card = driver_begin() ? card_of_device(device) : UNKNOWN_CARD;
    CUresult result = REAL(cuDeviceTotalMem_v2)(bytes, device);
    if (result == CUDA_SUCCESS && card != UNKNOWN_CARD) LOWER(bytes, limit_of(card));
    return result;
}

CUresult cuMemGetInfo(unsigned *available, unsigned *total) {
    int card = driver_begin() ? card_of_thread() : UNKNOWN_CARD;
    CUresult result = REAL(cuMemGetInfo)(available, total);
    if (result != CUDA_SUCCESS || card == UNKNOWN_CARD) return result;
    u64 left = available_of(card);
    LOWER(available, left);
    LOWER(total, limit_of(card));
    return result;
}

CUresult cuMemGetInfo_v2(size_t *available, size_t *total) {
    int card = driver_begin() ? card_of_thread() : UNKNOWN_CARD;
    CUresult result = REAL(cuMemGetInfo_v2)(available, total);
    if (result != CUDA_SUCCESS || card == UNKNOWN_CARD) return result;
    u64 left = available_of(card);
    LOWER(available, left);
    LOWER(total, limit_of(card));
    return result;
}

/* The driver alone knows which version of a function fits: its answer is the address of one that it exports.
 */
static CUresult replaced(CUresult result, void **function) {
    if (result == CUDA_SUCCESS && function) *function = driver_replacement(*function);
    return result;
}

CUresult cuGetProcAddress(const char *symbol, void **function, int version, u64 flags) {
    driver_begin();
    return replaced(REAL(cuGetProcAddress)(symbol, function, version, flags), function);
}

CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, u64 flags, int *status) {
    driver_begin();
    return replaced(REAL(cuGetProcAddress_v2)(symbol, function, version, flags, status), function);
}

CUresult cuGetProcAddress_v2_ptsz(const char *symbol, void **function, int version, u64 flags, int *status) {
    driver_begin();
    return replaced(REAL(cuGetProcAddress_v2_ptsz)(symbol, function, version, flags, status), function);
}
