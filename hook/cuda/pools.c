/* Pools of memory. The driver says how much each has taken from its card and how much of that is in use. */
#include "pools.h"
#include "allocations.h"
#include "cards.h"
#include "driver.h"
#include "ledger.h"
#include "mutex.h"
#include "system.h"

#define MOST_POOLS 256
/* A pool grows by multiples of this. */
#define STEP (32ULL << 20)
/* A call that lets a pool grow waits at most 2 s for another one. */
#define PAUSE 20000 /* nanoseconds */
#define MOST_PAUSES 100000

enum attribute { RESERVED_NOW = 5, USED_NOW = 7 };

struct pool {
    u64 number;          /* 0: a free row */
    CUmemoryPool handle; /* NULL: destroyed */
    u64 allocations;     /* not freed */
    int card;
    u64 charged; /* what the driver said that it has, and "awaited" */
    u64 awaited; /* growth by calls under way */
};

/* Pools are asked under the mutex, and a pool leaves the table before it is destroyed: the driver is never
 * asked for a pool that another thread has destroyed. */
static struct mutex mutex;
static struct pool pools[MOST_POOLS];
static int rows; /* the first of them that were ever used */
static u64 last_number;

void pools_forget(void) {
    mutex.state = 0;
    for (int i = 0; i < rows; i++) pools[i] = (struct pool){0};
    rows = 0;
}

static struct pool *find(CUmemoryPool handle) {
    for (int i = 0; i < rows && handle; i++)
        if (pools[i].handle == handle) return &pools[i];
    return NULL;
}

static void add(CUmemoryPool handle, int card) {
    int row = 0;
    while (row < rows && pools[row].number) row++;
    if (row == MOST_POOLS) return;
    pools[row] = (struct pool){.number = ++last_number, .handle = handle, .card = card};
    if (row == rows) __atomic_store_n(&rows, rows + 1, __ATOMIC_RELAXED);
}

void pools_add(CUmemoryPool pool, int card) {
    HOLD(&mutex);
    if (!find(pool)) add(pool, card);
}

/* The driver keeps the memory of a destroyed pool until all is freed that was allocated from it. */
static void remove_if_unused(struct pool *pool) {
    if (pool->handle || pool->allocations) return;
    ledger_give_back(pool->card, pool->charged);
    *pool = (struct pool){0};
}

u64 pools_leave(CUmemoryPool handle) {
    HOLD(&mutex);
    struct pool *pool = find(handle);
    if (!pool) return 0;
    pool->handle = NULL;
    return pool->number;
}

static struct pool *find_number(u64 number) {
    for (int i = 0; i < rows && number; i++)
        if (pools[i].number == number) return &pools[i];
    return NULL;
}

void pools_left(u64 number, CUmemoryPool still_there) {
    HOLD(&mutex);
    struct pool *pool = find_number(number);
    if (!pool) return;
    pool->handle = still_there;
    remove_if_unused(pool);
}

void pools_freed(u64 number) {
    HOLD(&mutex);
    struct pool *pool = find_number(number);
    if (!pool) return;
    pool->allocations--;
    remove_if_unused(pool);
}

static u64 ask(const struct pool *pool, enum attribute attribute) {
    u64 bytes = 0;
    if (!HAS(cuMemPoolGetAttribute)) return 0;
    return REAL(cuMemPoolGetAttribute)(pool->handle, attribute, &bytes) == CUDA_SUCCESS ? bytes : 0;
}

/* Growth by a call under way may be in the driver's figure already, and does not count twice. False: the pool
 * has grown, and the container has more than its limit. */
static bool recount(struct pool *pool) {
    u64 reserved = ask(pool, RESERVED_NOW), bytes = reserved + pool->awaited, before = pool->charged;
    if (bytes > before) bytes = reserved > before ? reserved : before;
    __atomic_store_n(&pool->charged, bytes, __ATOMIC_RELAXED);
    if (bytes > before) return ledger_charge_anyway(pool->card, bytes - before);
    ledger_give_back(pool->card, before - bytes);
    return true;
}

/* Most processes use no pool: then this costs nothing. */
static bool has_any(void) {
    int count = __atomic_load_n(&rows, __ATOMIC_RELAXED);
    for (int i = 0; i < count; i++)
        if (__atomic_load_n(&pools[i].charged, __ATOMIC_RELAXED)) return true;
    return false;
}

void pools_look(void) {
    if (!has_any()) return;
    HOLD(&mutex);
    for (int i = 0; i < rows; i++)
        if (pools[i].handle && pools[i].charged) recount(&pools[i]);
}

bool pools_trim(int card) {
    bool freed = false;
    if (!has_any()) return false;
    HOLD(&mutex);
    for (int i = 0; i < rows; i++) {
        u64 before = pools[i].charged;
        if (!pools[i].handle || pools[i].card != card || !before) continue;
        REAL(cuMemPoolTrimTo)(pools[i].handle, 0);
        recount(&pools[i]);
        freed |= pools[i].charged < before;
    }
    return freed;
}

/* A pool that the program has not made may be a device's own; others (imported ones, the host's) take nothing
 * from a card. */
static struct pool *find_of_device(CUmemoryPool handle) {
    int count = 0;
    CUmemoryPool own;
    if (!handle || !HAS(cuDeviceGetDefaultMemPool) || !HAS(cuDeviceGetCount)) return NULL;
    REAL(cuDeviceGetCount)(&count);
    for (CUdevice device = 0; device < count; device++) {
        if (REAL(cuDeviceGetDefaultMemPool)(&own, device) != CUDA_SUCCESS || own != handle) continue;
        int card = card_of_device(device);
        if (card != UNKNOWN_CARD) add(handle, card);
    }
    return find(handle);
}

static u64 growth_for(const struct pool *pool, u64 bytes) {
    u64 used = ask(pool, USED_NOW), reserved = ask(pool, RESERVED_NOW), sum;
    if (__builtin_add_overflow(used + pool->awaited, bytes, &sum)) return ~0ULL;
    return sum > reserved ? sum - reserved : 0;
}

static u64 steps(u64 bytes) { return bytes > ~0ULL - STEP ? bytes : (bytes + STEP - 1) / STEP * STEP; }

enum answer { CHARGED, REFUSED, BUSY };

static enum answer try_to_charge(struct growth *growth, CUmemoryPool handle, u64 bytes, int *card) {
    HOLD(&mutex);
    struct pool *pool = find(handle);
    if (!pool) pool = find_of_device(handle);
    if (!pool) return CHARGED;
    *card = pool->card;
    u64 more = steps(growth_for(pool, bytes));
    if (more && pool->awaited) return BUSY;
    if (!ledger_charge(pool->card, more)) return REFUSED;
    pool->awaited += more;
    __atomic_store_n(&pool->charged, pool->charged + more, __ATOMIC_RELAXED);
    *growth = (struct growth){handle, more};
    return CHARGED;
}

/* One call after the other lets a pool grow: whether the driver's figures have the growth of one under way
 * cannot be known, so it would count twice. */
static bool charge_pool(struct growth *growth, CUmemoryPool handle, u64 bytes, int *card) {
    enum answer answer = BUSY;
    for (int pauses = 0; pauses < MOST_PAUSES; pauses++) {
        answer = try_to_charge(growth, handle, bytes, card);
        if (answer != BUSY) break;
        sleep_nanoseconds(PAUSE);
    }
    return answer == CHARGED;
}

bool pools_charge(struct growth *growth, CUmemoryPool pool, u64 bytes) {
    int card = UNLISTED;
    *growth = (struct growth){0};
    if (charge_pool(growth, pool, bytes, &card)) return true;
    return pools_trim(card) && charge_pool(growth, pool, bytes, &card);
}

bool pools_settle(const struct growth *growth, CUdeviceptr address) {
    HOLD(&mutex);
    struct pool *pool = find(growth->pool);
    if (!pool) return true;
    struct allocation made = {.key = address, .share = pool->number, .kind = POOLED};
    if (address && allocations_add(&made, NULL)) pool->allocations++;
    pool->awaited -= growth->bytes < pool->awaited ? growth->bytes : pool->awaited;
    return recount(pool);
}
