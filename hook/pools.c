/* Pools of memory. The driver says how much each has taken from its card and how much of that is in use;
 * before an allocation, what the pool will have to take more is charged. */
#include "pools.h"
#include "allocations.h"
#include "cards.h"
#include "charge.h"
#include "contexts.h"
#include "driver.h"
#include "ledger.h"
#include "mutex.h"

#define MOST_POOLS 256
/* A pool grows by multiples of this. */
#define GROWTH (32ULL << 20)

enum attribute { RESERVED_NOW = 5, USED_NOW = 7 };

struct pool {
    CUmemoryPool handle; /* NULL: a free row */
    int card;
    u64 charged; /* of "reserved", as last seen, and of "awaited" */
    u64 awaited; /* growth by calls under way */
};

/* Pools are asked under the mutex, and a pool leaves the table before it is destroyed: the driver is never
 * asked for a pool that another thread has destroyed. */
static struct mutex mutex;
static struct pool pools[MOST_POOLS];

void pools_forget(void) {
    mutex.state = 0;
    for (int i = 0; i < MOST_POOLS; i++) pools[i] = (struct pool){0};
}

static struct pool *find(CUmemoryPool handle) {
    for (int i = 0; i < MOST_POOLS && handle; i++)
        if (pools[i].handle == handle) return &pools[i];
    return NULL;
}

/* NULL: there are too many, so this one is not counted. */
static struct pool *add(CUmemoryPool handle, int card) {
    for (int i = 0; i < MOST_POOLS; i++) {
        if (pools[i].handle) continue;
        pools[i] = (struct pool){.handle = handle, .card = card};
        return &pools[i];
    }
    return NULL;
}

static u64 ask(const struct pool *pool, enum attribute attribute) {
    u64 bytes = 0;
    return HAS(cuMemPoolGetAttribute) &&
                   REAL(cuMemPoolGetAttribute)(pool->handle, attribute, &bytes) == CUDA_SUCCESS
               ? bytes
               : 0;
}

/* False: the container has more than its limit. */
static bool recount(struct pool *pool) {
    u64 bytes = ask(pool, RESERVED_NOW) + pool->awaited, before = pool->charged;
    pool->charged = bytes;
    if (bytes > before) return ledger_charge_anyway(pool->card, bytes - before);
    ledger_give_back(pool->card, before - bytes);
    return true;
}

void pools_look(void) {
    if (!driver_begin()) return;
    for (int i = 0; i < MOST_POOLS; i++) {
        if (!__atomic_load_n(&pools[i].charged, __ATOMIC_RELAXED)) continue;
        HOLD(&mutex);
        if (pools[i].handle) recount(&pools[i]);
    }
}

bool pools_trim(int card) {
    u64 freed = 0;
    for (int i = 0; i < MOST_POOLS; i++) {
        if (!__atomic_load_n(&pools[i].charged, __ATOMIC_RELAXED)) continue;
        HOLD(&mutex);
        u64 before = pools[i].charged;
        if (!pools[i].handle || pools[i].card != card) continue;
        REAL(cuMemPoolTrimTo)(pools[i].handle, 0);
        recount(&pools[i]);
        freed += before > pools[i].charged ? before - pools[i].charged : 0;
    }
    return freed > 0;
}

/* An allocation from a pool. POOL NULL: it is not counted. */
struct growth {
    CUmemoryPool pool;
    u64 bytes;
};

static u64 growth_for(const struct pool *pool, u64 bytes) {
    u64 used = ask(pool, USED_NOW), reserved = ask(pool, RESERVED_NOW), sum;
    if (__builtin_add_overflow(used + pool->awaited, bytes, &sum) || sum > ~0ULL - GROWTH) return ~0ULL >> 2;
    return sum > reserved ? (sum - reserved + GROWTH - 1) / GROWTH * GROWTH : 0;
}

static bool charge_growth(struct growth *growth, CUmemoryPool handle, u64 bytes) {
    HOLD(&mutex);
    struct pool *pool = find(handle);
    if (!pool) return true;
    u64 more = growth_for(pool, bytes);
    if (!ledger_charge(pool->card, more)) return false;
    pool->charged += more;
    pool->awaited += more;
    *growth = (struct growth){handle, more};
    return true;
}

/* A pool nobody has made is a device's own; others (imported ones, the host's) take nothing from a card. */
static void learn(CUmemoryPool handle) {
    int count = 0;
    CUmemoryPool own;
    HOLD(&mutex);
    if (!handle || find(handle) || !HAS(cuDeviceGetDefaultMemPool) || !HAS(cuDeviceGetCount)) return;
    REAL(cuDeviceGetCount)(&count);
    for (CUdevice device = 0; device < count; device++) {
        if (REAL(cuDeviceGetDefaultMemPool)(&own, device) != CUDA_SUCCESS || own != handle) continue;
        int card = card_of_device(device);
        if (card != UNKNOWN_CARD) add(handle, card);
    }
}

/* False: it does not fit. */
static bool begin(struct growth *growth, CUmemoryPool pool, u64 bytes) {
    u32 owner;
    *growth = (struct growth){0};
    int card = driver_begin() ? card_of_thread() : UNKNOWN_CARD;
    if (card == UNKNOWN_CARD) return true;
    if (!contexts_use(card, &owner)) return false;
    learn(pool);
    if (charge_growth(growth, pool, bytes)) return true;
    return pools_trim(card) && charge_growth(growth, pool, bytes);
}

/* The pool that an allocation of this thread's device comes from. */
static CUmemoryPool pool_of_thread(void) {
    CUdevice device;
    CUmemoryPool pool = NULL;
    if (!driver_begin() || !HAS(cuDeviceGetMemPool) || !HAS(cuCtxGetDevice)) return NULL;
    if (REAL(cuCtxGetDevice)(&device) != CUDA_SUCCESS) return NULL;
    return REAL(cuDeviceGetMemPool)(&pool, device) == CUDA_SUCCESS ? pool : NULL;
}

/* False: the pool has grown by more than was charged, and beyond the limit. */
static bool settle(const struct growth *growth) {
    HOLD(&mutex);
    struct pool *pool = find(growth->pool);
    if (!pool) return true;
    pool->awaited -= growth->bytes < pool->awaited ? growth->bytes : pool->awaited;
    return recount(pool);
}

typedef CUresult free_function(CUdeviceptr address, CUstream stream);

static CUresult end(const struct growth *growth, CUresult result, const CUdeviceptr *address, CUstream stream,
                    free_function *free) {
    if (!growth->pool || settle(growth) || result != CUDA_SUCCESS || !address) return result;
    free(*address, stream);
    pools_look();
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream) {
    struct growth growth;
    if (!begin(&growth, pool_of_thread(), bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuMemAllocAsync)(address, bytes, stream);
    return end(&growth, result, address, stream, REAL(cuMemFreeAsync));
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr *address, size_t bytes, CUstream stream) {
    struct growth growth;
    if (!begin(&growth, pool_of_thread(), bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuMemAllocAsync_ptsz)(address, bytes, stream);
    return end(&growth, result, address, stream, REAL(cuMemFreeAsync_ptsz));
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream) {
    struct growth growth;
    if (!begin(&growth, pool, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuMemAllocFromPoolAsync)(address, bytes, pool, stream);
    return end(&growth, result, address, stream, REAL(cuMemFreeAsync));
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *address, size_t bytes, CUmemoryPool pool,
                                      CUstream stream) {
    struct growth growth;
    if (!begin(&growth, pool, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuMemAllocFromPoolAsync_ptsz)(address, bytes, pool, stream);
    return end(&growth, result, address, stream, REAL(cuMemFreeAsync_ptsz));
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
    struct release release;
    release_begin(&release, ADDRESS, address);
    CUresult result = release_settle(&release, REAL(cuMemFreeAsync)(address, stream));
    pools_look();
    return result;
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream) {
    struct release release;
    release_begin(&release, ADDRESS, address);
    CUresult result = release_settle(&release, REAL(cuMemFreeAsync_ptsz)(address, stream));
    pools_look();
    return result;
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const struct pool_properties *properties) {
    bool on_card = driver_begin() && properties && properties->location.type == LOCATION_DEVICE;
    int card = on_card ? card_of_device(properties->location.id) : UNKNOWN_CARD;
    CUresult result = REAL(cuMemPoolCreate)(pool, properties);
    if (result != CUDA_SUCCESS || card == UNKNOWN_CARD || !pool) return result;
    HOLD(&mutex);
    if (!find(*pool)) add(*pool, card);
    return result;
}

/* What is still allocated from it is freed later, and is not counted any more. */
static void forget_pool(CUmemoryPool handle) {
    HOLD(&mutex);
    struct pool *pool = find(handle);
    if (!pool) return;
    ledger_give_back(pool->card, pool->charged);
    *pool = (struct pool){0};
}

CUresult cuMemPoolDestroy(CUmemoryPool pool) {
    if (driver_begin()) forget_pool(pool);
    return REAL(cuMemPoolDestroy)(pool);
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
        pools_look();                                                                                        \
        return result;                                                                                       \
    }
WAIT(cuCtxSynchronize, (void), ())
WAIT(cuCtxSynchronize_v2, (CUcontext context), (context))
WAIT(cuStreamSynchronize, (CUstream stream), (stream))
WAIT(cuStreamSynchronize_ptsz, (CUstream stream), (stream))
WAIT(cuEventSynchronize, (CUevent event), (event))
