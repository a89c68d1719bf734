/* cuMemAlloc and its likes, and cuMemFree. */
#include "charge.h"
#include "driver.h"

/* Rows begin at multiples of this; drivers choose 512 bytes at most. */
#define PITCH 512

static u64 product(u64 one, u64 other) {
    u64 bytes;
    return __builtin_mul_overflow(one, other, &bytes) ? ~0ULL : bytes;
}

static u64 pitched(u64 width, u64 height) {
    return product(width > ~0ULL - PITCH ? width : (width + PITCH - 1) / PITCH * PITCH, height);
}

CUresult cuMemAlloc(unsigned *address, unsigned bytes) {
    struct charge charge;
    if (!charge_begin_paged(&charge, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuMemAlloc)(address, bytes);
    return charge_settle_paged(&charge, result, address ? *address : 0);
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
    struct charge charge;
    if (!charge_begin_paged(&charge, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuMemAlloc_v2)(address, bytes);
    return charge_settle_paged(&charge, result, address ? *address : 0);
}

CUresult cuMemAllocPitch(unsigned *address, unsigned *pitch, unsigned width, unsigned height,
                         unsigned element) {
    struct charge charge;
    if (!charge_begin_paged(&charge, pitched(width, height))) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuMemAllocPitch)(address, pitch, width, height, element);
    if (result == CUDA_SUCCESS && pitch) charge_adjust(&charge, rounded_up(product(*pitch, height)));
    return charge_settle_paged(&charge, result, address ? *address : 0);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height,
                            unsigned element) {
    struct charge charge;
    if (!charge_begin_paged(&charge, pitched(width, height))) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuMemAllocPitch_v2)(address, pitch, width, height, element);
    if (result == CUDA_SUCCESS && pitch) charge_adjust(&charge, rounded_up(product(*pitch, height)));
    return charge_settle_paged(&charge, result, address ? *address : 0);
}

/* Counts where it would lie if the card used all of it. */
CUresult cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned flags) {
    struct charge charge;
    if (!charge_begin(&charge, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuMemAllocManaged)(address, bytes, flags);
    return charge_settle(&charge, result, ADDRESS, address ? *address : 0);
}

CUresult cuMemFree(unsigned address) {
    struct release release;
    release_begin(&release, ADDRESS, address);
    return release_settle(&release, REAL(cuMemFree)(address));
}

CUresult cuMemFree_v2(CUdeviceptr address) {
    struct release release;
    release_begin(&release, ADDRESS, address);
    return release_settle(&release, REAL(cuMemFree_v2)(address));
}
