/* Memory that is allocated and freed in the order of a stream, from a pool. */
#include "charge.h"
#include "contexts.h"
#include "driver.h"
#include "pools.h"

/* Streams up to this one are names: the default one, and those of the process and of the thread. */
#define LAST_NAMED_STREAM 2

typedef CUresult capture_function(CUstream stream, int *status);
typedef CUresult free_function(CUdeviceptr address, CUstream stream);

/* What is allocated while a stream is captured belongs to a graph, and to no pool. */
static bool is_captured(bool known, capture_function *ask, CUstream stream) {
    int status = 0;
    return known && ask(stream, &status) == CUDA_SUCCESS && status;
}

/* The default stream cannot be captured, and to ask for it is an error while others are. */
static bool is_captured_v1(CUstream stream) {
    return (uintptr_t)stream >= LAST_NAMED_STREAM &&
           is_captured(HAS(cuStreamIsCapturing), REAL(cuStreamIsCapturing), stream);
}

static bool is_captured_ptsz(CUstream stream) {
    return is_captured(HAS(cuStreamIsCapturing_ptsz), REAL(cuStreamIsCapturing_ptsz), stream);
}

/* The pool of the stream's device; where the driver cannot tell that, of this thread's. */
static CUmemoryPool pool_of(CUstream stream) {
    CUdevice device;
    CUmemoryPool pool = NULL;
    bool told = (uintptr_t)stream > LAST_NAMED_STREAM && HAS(cuStreamGetDevice) &&
                REAL(cuStreamGetDevice)(stream, &device) == CUDA_SUCCESS;
    if (!told && (!HAS(cuCtxGetDevice) || REAL(cuCtxGetDevice)(&device) != CUDA_SUCCESS)) return NULL;
    if (!HAS(cuDeviceGetMemPool) || REAL(cuDeviceGetMemPool)(&pool, device) != CUDA_SUCCESS) return NULL;
    return pool;
}

/* False: it does not fit. */
static bool begin(struct growth *growth, CUmemoryPool pool, u64 bytes) {
    u32 owner;
    int card = card_of_thread();
    if (card != UNKNOWN_CARD && !contexts_use(card, &owner)) return false;
    return pools_charge(growth, pool, bytes);
}

static CUresult end(const struct growth *growth, CUresult result, const CUdeviceptr *address, CUstream stream,
                    free_function *free) {
    CUdeviceptr made = result == CUDA_SUCCESS && address ? *address : 0;
    struct release release;
    if (!growth->pool || pools_settle(growth, made) || !made) return result;
    release_begin(&release, ADDRESS, made);
    release_settle(&release, free(made, stream));
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream) {
    struct growth growth = {0};
    if (driver_begin() && !is_captured_v1(stream) && !begin(&growth, pool_of(stream), bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuMemAllocAsync)(address, bytes, stream);
    return end(&growth, result, address, stream, REAL(cuMemFreeAsync));
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr *address, size_t bytes, CUstream stream) {
    struct growth growth = {0};
    if (driver_begin() && !is_captured_ptsz(stream) && !begin(&growth, pool_of(stream), bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuMemAllocAsync_ptsz)(address, bytes, stream);
    return end(&growth, result, address, stream, REAL(cuMemFreeAsync_ptsz));
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream) {
    struct growth growth = {0};
    if (driver_begin() && !is_captured_v1(stream) && !begin(&growth, pool, bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuMemAllocFromPoolAsync)(address, bytes, pool, stream);
    return end(&growth, result, address, stream, REAL(cuMemFreeAsync));
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *address, size_t bytes, CUmemoryPool pool,
                                      CUstream stream) {
    struct growth growth = {0};
    if (driver_begin() && !is_captured_ptsz(stream) && !begin(&growth, pool, bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuMemAllocFromPoolAsync_ptsz)(address, bytes, pool, stream);
    return end(&growth, result, address, stream, REAL(cuMemFreeAsync_ptsz));
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
    struct release release;
    release_begin(&release, ADDRESS, address);
    return release_settle(&release, REAL(cuMemFreeAsync)(address, stream));
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream) {
    struct release release;
    release_begin(&release, ADDRESS, address);
    return release_settle(&release, REAL(cuMemFreeAsync_ptsz)(address, stream));
}

/* Its properties stay as the program has them: what it takes is charged before the driver is asked, so no
 * maxSize is needed; and drivers before CUDA 12.2 have to find 0 there. */
CUresult cuMemPoolCreate(CUmemoryPool *pool, const struct pool_properties *properties) {
    bool on_card = driver_begin() && properties && properties->location.type == LOCATION_DEVICE;
    int card = on_card ? card_of_device(properties->location.id) : UNKNOWN_CARD;
    CUresult result = REAL(cuMemPoolCreate)(pool, properties);
    if (result == CUDA_SUCCESS && card != UNKNOWN_CARD && pool) pools_add(*pool, card);
    return result;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool) {
    u64 number = driver_begin() ? pools_leave(pool) : 0;
    CUresult result = REAL(cuMemPoolDestroy)(pool);
    pools_left(number, result == CUDA_SUCCESS ? NULL : pool);
    return result;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
    driver_begin();
    CUresult result = REAL(cuMemPoolTrimTo)(pool, keep);
    pools_look();
    return result;
}

/* Pools give back at waits what they do not keep: other processes of the container shall have it. */
#define WAIT(name, parameters, arguments)                                                                    \
    CUresult name parameters {                                                                               \
        driver_begin();                                                                                      \
        CUresult result = REAL(name) arguments;                                                              \
        if (result == CUDA_SUCCESS) pools_look();                                                            \
        return result;                                                                                       \
    }
WAIT(cuCtxSynchronize, (void), ())
WAIT(cuCtxSynchronize_v2, (CUcontext context), (context))
WAIT(cuStreamSynchronize, (CUstream stream), (stream))
WAIT(cuStreamSynchronize_ptsz, (CUstream stream), (stream))
WAIT(cuEventSynchronize, (CUevent event), (event))
