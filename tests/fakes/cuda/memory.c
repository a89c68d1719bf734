/* Memory of cards, of pools and of the host. */
#define _GNU_SOURCE
#include "stub.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 65536
#define SHARED 256
#define ON_DEVICE 1 /* CU_MEM_LOCATION_TYPE_DEVICE */

struct pool {
    int card, of_host; /* card: INDEX */
    int ended;         /* destroyed: it goes with the last memory that it gave */
    uint64_t used, reserved, most_used, most_reserved, threshold, limit;
    struct pool *next;
};
struct created {
    int card;
    uint64_t bytes;
    int handles, mappings;
}; /* card -1: of the host */

/* What is at an address: one kind of the three. */
struct block {
    uint64_t address, bytes;
    int card;
    void *context;
    struct pool *pool;
    struct created *created;
    struct block *next;
};

static struct block *blocks[BUCKETS];
static struct created *exported[SHARED];
static struct pool defaults[CARDS], *current[CARDS], *pools;
static pthread_mutex_t threads = PTHREAD_MUTEX_INITIALIZER;

static uint64_t rounded(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

void forget_memory(void) {
    memset(blocks, 0, sizeof blocks);
    memset(defaults, 0, sizeof defaults);
    memset(current, 0, sizeof current);
    forget_pages();
    pools = NULL;
    forget_arrays();
    pthread_mutex_init(&threads, NULL);
}

static struct block **bucket(uint64_t address) {
    return &blocks[(address / 512 * 0x9E3779B97F4A7C15) >> 48]; /* of 2^16 */
}

/* The caller holds the lock, here and below. */
static void keep(struct block block) {
    struct block *kept = malloc(sizeof *kept), **first = bucket(block.address);
    *kept = block;
    kept->next = *first;
    *first = kept;
}

static struct block *find(uint64_t address) {
    struct block *block = *bucket(address);
    while (block && block->address != address) block = block->next;
    return block;
}

static void resize(struct pool *pool, uint64_t reserved) {
    if (!pool->of_host && reserved < pool->reserved) give_back(pool->card, pool->reserved - reserved);
    pool->reserved = reserved;
}

static void shrink(struct pool *pool, uint64_t kept) {
    uint64_t needed = rounded(pool->used, pool_chunk);
    if (kept < needed) kept = needed;
    if (kept < pool->reserved) resize(pool, kept);
}

static int grow(struct pool *pool, uint64_t bytes) {
    uint64_t needed = rounded(pool->used + bytes, pool_chunk);
    if (needed > pool->reserved) {
        if (pool->limit && needed > pool->limit) return OUT_OF_MEMORY;
        if (!pool->of_host && take(pool->card, needed - pool->reserved)) return OUT_OF_MEMORY;
        pool->reserved = needed;
    }
    pool->used += bytes;
    if (pool->used > pool->most_used) pool->most_used = pool->used;
    if (pool->reserved > pool->most_reserved) pool->most_reserved = pool->reserved;
    return OK;
}

static void end_pool(struct pool *pool) {
    struct pool **at = &pools;
    while (*at != pool) at = &(*at)->next;
    *at = pool->next;
    resize(pool, 0);
    free(pool);
}

static void end_created(struct created *created) {
    if (created->handles || created->mappings) return;
    if (created->card >= 0) give_back(created->card, created->bytes);
    free(created);
}

static void end(struct block *block) {
    struct block **at = bucket(block->address);
    while (*at != block) at = &(*at)->next;
    *at = block->next;
    if (block->created) {
        block->created->mappings--;
        end_created(block->created);
    } else if (block->pool) {
        block->pool->used -= block->bytes;
        if (block->pool->ended && !block->pool->used) end_pool(block->pool);
    } else {
        give_back_pages(block->card, block->address, block->bytes);
    }
    free(block);
}

void free_of_context(void *context) {
    pthread_mutex_lock(&threads);
    for (int i = 0; i < BUCKETS; i++)
        for (struct block *block = blocks[i], *next; block; block = next) {
            next = block->next;
            if (block->context == context) end(block);
        }
    pthread_mutex_unlock(&threads);
    free_arrays_of_context(context);
}

static int allocate(uint64_t *address, uint64_t bytes, int small) {
    int device = current_device();
    if (device < 0) return INVALID_CONTEXT;
    if (!address || !bytes) return INVALID_VALUE;
    struct block block = {.bytes = bytes, .card = card_of(device), .context = current_context()};
    pthread_mutex_lock(&threads);
    int code = take_pages(block.card, bytes, &block.address, small);
    if (!code) {
        keep(block);
        *address = block.address;
    }
    pthread_mutex_unlock(&threads);
    return code;
}

static int release_later(uint64_t address) {
    pthread_mutex_lock(&threads);
    struct block *block = find(address);
    int known = block && !block->created;
    if (known) end(block);
    pthread_mutex_unlock(&threads);
    return known ? OK : INVALID_VALUE;
}

/* It synchronizes. */
static int release(uint64_t address) {
    if (!address) return OK;
    int code = release_later(address);
    shrink_pools();
    return code;
}

static int allocate_small(unsigned *address, uint64_t bytes) {
    uint64_t wide;
    int code = address ? allocate(&wide, bytes, 1) : INVALID_VALUE;
    if (!code) *address = (unsigned)wide;
    return code;
}

EXPORT int cuMemAlloc(unsigned *address, unsigned bytes) {
    FAILS_IF_TOLD;
    return allocate_small(address, bytes);
}
EXPORT int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
    FAILS_IF_TOLD;
    return allocate(address, bytes, 0);
}

#define PITCH 512
EXPORT int cuMemAllocPitch(unsigned *address, unsigned *pitch, unsigned width, unsigned height,
                           unsigned element) {
    (void)element;
    FAILS_IF_TOLD;
    if (!pitch) return INVALID_VALUE;
    *pitch = (unsigned)rounded(width, PITCH);
    return allocate_small(address, (uint64_t)*pitch * height);
}
EXPORT int cuMemAllocPitch_v2(uint64_t *address, size_t *pitch, size_t width, size_t height,
                              unsigned element) {
    (void)element;
    FAILS_IF_TOLD;
    if (!pitch) return INVALID_VALUE;
    *pitch = rounded(width, PITCH);
    return allocate(address, *pitch * height, 0);
}
EXPORT int cuMemAllocManaged(uint64_t *address, size_t bytes, unsigned flags) {
    (void)flags;
    FAILS_IF_TOLD;
    return allocate(address, bytes, 0);
}
EXPORT int cuMemFree(unsigned address) {
    FAILS_IF_TOLD;
    return release(address);
}
EXPORT int cuMemFree_v2(uint64_t address) {
    FAILS_IF_TOLD;
    return release(address);
}
EXPORT int cuMemGetAddressRange_v2(uint64_t *base, size_t *bytes, uint64_t address) {
    pthread_mutex_lock(&threads);
    struct block *block = find(address);
    if (block && base) *base = block->address;
    if (block && bytes) *bytes = block->bytes;
    pthread_mutex_unlock(&threads);
    return block ? OK : NOT_FOUND;
}

/* Of the host: no card's. */
EXPORT int cuMemAllocHost(void **address, unsigned bytes) {
    *address = malloc(bytes);
    return OK;
}
EXPORT int cuMemAllocHost_v2(void **address, size_t bytes) {
    *address = malloc(bytes);
    return OK;
}
EXPORT int cuMemHostAlloc(void **address, size_t bytes, unsigned flags) {
    (void)flags;
    *address = malloc(bytes);
    return OK;
}
EXPORT int cuMemFreeHost(void *address) {
    free(address);
    return OK;
}

/* Pools. The names of their properties are those of CUDA's documentation. */
struct location {
    int type, id;
};
struct pool_properties {
    int allocation, handles;
    struct location location;
    void *security;
    size_t limit;
    unsigned char rest[56];
};

static struct pool *default_pool(int device) {
    int card = card_of(device);
    defaults[card].card = card;
    return &defaults[card];
}
static struct pool *pool_in_use(int device) {
    struct pool *chosen = current[card_of(device)];
    return chosen ? chosen : default_pool(device);
}

void shrink_pools(void) {
    pthread_mutex_lock(&threads);
    for (int card = 0; card < CARDS; card++) shrink(&defaults[card], defaults[card].threshold);
    for (struct pool *pool = pools; pool; pool = pool->next) shrink(pool, pool->threshold);
    pthread_mutex_unlock(&threads);
}

EXPORT int cuMemPoolCreate(struct pool **pool, const struct pool_properties *properties) {
    FAILS_IF_TOLD;
    if (!pool || !properties) return INVALID_VALUE;
    int of_host = properties->location.type != ON_DEVICE,
        card = of_host ? 0 : card_of(properties->location.id);
    if (card < 0) return INVALID_DEVICE;
    *pool = calloc(1, sizeof **pool);
    **pool = (struct pool){.card = card, .of_host = of_host, .limit = properties->limit};
    pthread_mutex_lock(&threads);
    (*pool)->next = pools;
    pools = *pool;
    pthread_mutex_unlock(&threads);
    return OK;
}
EXPORT int cuMemPoolDestroy(struct pool *pool) {
    FAILS_IF_TOLD;
    if (!pool) return INVALID_VALUE;
    pthread_mutex_lock(&threads);
    if (current[pool->card] == pool) current[pool->card] = NULL;
    pool->ended = 1;
    if (!pool->used) end_pool(pool);
    pthread_mutex_unlock(&threads);
    return OK;
}
EXPORT int cuMemPoolTrimTo(struct pool *pool, size_t kept) {
    FAILS_IF_TOLD;
    if (!pool) return INVALID_VALUE;
    pthread_mutex_lock(&threads);
    shrink(pool, kept);
    pthread_mutex_unlock(&threads);
    return OK;
}

enum { THRESHOLD = 4, RESERVED, MOST_RESERVED, USED, MOST_USED, CARD = 11, LOCATION, LIMIT };
EXPORT int cuMemPoolGetAttribute(struct pool *pool, int attribute, uint64_t *value) {
    FAILS_IF_TOLD;
    if (!pool || !value) return INVALID_VALUE;
    switch (attribute) {
    case THRESHOLD:
        *value = pool->threshold;
        return OK;
    case RESERVED:
        *value = pool->reserved;
        return OK;
    case MOST_RESERVED:
        *value = pool->most_reserved;
        return OK;
    case USED:
        *value = pool->used;
        return OK;
    case MOST_USED:
        *value = pool->most_used;
        return OK;
    case LIMIT:
        *value = pool->limit;
        return OK;
    case 1:
    case 2:
    case 3:
        *(int *)value = 1;
        return OK;
    case LOCATION:
        *(int *)value = pool->of_host ? 2 : ON_DEVICE;
        return OK;
    case CARD:
        for (int device = 0; device < device_count; device++)
            if (card_of(device) == pool->card) *(int *)value = device;
        return OK;
    default:
        return INVALID_VALUE;
    }
}
EXPORT int cuMemPoolSetAttribute(struct pool *pool, int attribute, const uint64_t *value) {
    if (!pool || !value) return INVALID_VALUE;
    if (attribute == THRESHOLD) pool->threshold = *value;
    return OK;
}
EXPORT int cuMemPoolSetAccess(struct pool *pool, const void *map, size_t count) {
    (void)pool, (void)map, (void)count;
    return OK;
}
EXPORT int cuDeviceGetDefaultMemPool(struct pool **pool, int device) {
    if (!pool) return INVALID_VALUE;
    if (card_of(device) < 0) return INVALID_DEVICE;
    *pool = default_pool(device);
    return OK;
}
EXPORT int cuDeviceGetMemPool(struct pool **pool, int device) {
    if (!pool) return INVALID_VALUE;
    if (card_of(device) < 0) return INVALID_DEVICE;
    *pool = pool_in_use(device);
    return OK;
}
EXPORT int cuDeviceSetMemPool(int device, struct pool *pool) {
    if (card_of(device) < 0) return INVALID_DEVICE;
    current[card_of(device)] = pool;
    return OK;
}
EXPORT int cuMemGetDefaultMemPool(struct pool **pool, struct location *location, int type) {
    (void)type;
    return location->type == ON_DEVICE ? cuDeviceGetDefaultMemPool(pool, location->id) : NOT_SUPPORTED;
}
EXPORT int cuMemGetMemPool(struct pool **pool, struct location *location, int type) {
    (void)type;
    return location->type == ON_DEVICE ? cuDeviceGetMemPool(pool, location->id) : NOT_SUPPORTED;
}
EXPORT int cuMemSetMemPool(struct location *location, int type, struct pool *pool) {
    (void)type;
    return location->type == ON_DEVICE ? cuDeviceSetMemPool(location->id, pool) : NOT_SUPPORTED;
}

static void *captured; /* stream whose calls are recorded, and take nothing */

EXPORT int cuStreamBeginCapture_v2(void *stream, int mode) {
    (void)mode;
    captured = stream;
    return OK;
}
EXPORT int cuStreamEndCapture(void *stream, void **graph) {
    (void)stream;
    captured = NULL;
    *graph = &captured;
    return OK;
}
EXPORT int cuStreamIsCapturing(void *stream, int *status) {
    *status = stream && stream == captured;
    return OK;
}
EXPORT int cuStreamIsCapturing_ptsz(void *stream, int *status) { return cuStreamIsCapturing(stream, status); }
EXPORT int cuStreamGetDevice(void *stream, int *device) {
    (void)stream;
    *device = current_device();
    return OK;
}
EXPORT int cuStreamGetDevice_ptsz(void *stream, int *device) { return cuStreamGetDevice(stream, device); }

static int from_pool(uint64_t *address, size_t bytes, struct pool *pool, void *stream) {
    if (!address || !bytes || !pool) return INVALID_VALUE;
    pthread_mutex_lock(&threads);
    if (stream && stream == captured) {
        *address = room(bytes, 0);
        pthread_mutex_unlock(&threads);
        return OK;
    }
    int code = grow(pool, bytes);
    if (!code) {
        struct block block = {.address = room(bytes, 0), .bytes = bytes, .card = pool->card, .pool = pool};
        keep(block);
        *address = block.address;
    }
    pthread_mutex_unlock(&threads);
    return code;
}
static int from_current_pool(uint64_t *address, size_t bytes, void *stream) {
    int device = current_device();
    return device < 0 ? INVALID_CONTEXT : from_pool(address, bytes, pool_in_use(device), stream);
}
EXPORT int cuMemAllocAsync(uint64_t *address, size_t bytes, void *stream) {
    FAILS_IF_TOLD;
    return from_current_pool(address, bytes, stream);
}
EXPORT int cuMemAllocAsync_ptsz(uint64_t *address, size_t bytes, void *stream) {
    FAILS_IF_TOLD;
    return from_current_pool(address, bytes, stream);
}
EXPORT int cuMemAllocFromPoolAsync(uint64_t *address, size_t bytes, struct pool *pool, void *stream) {
    FAILS_IF_TOLD;
    return from_pool(address, bytes, pool, stream);
}
EXPORT int cuMemAllocFromPoolAsync_ptsz(uint64_t *address, size_t bytes, struct pool *pool, void *stream) {
    FAILS_IF_TOLD;
    return from_pool(address, bytes, pool, stream);
}
EXPORT int cuMemFreeAsync(uint64_t address, void *stream) {
    (void)stream;
    FAILS_IF_TOLD;
    return release_later(address);
}
EXPORT int cuMemFreeAsync_ptsz(uint64_t address, void *stream) {
    (void)stream;
    FAILS_IF_TOLD;
    return release_later(address);
}

/* Memory that is created, then mapped: it lives as long as a handle or a mapping of it does. */
struct properties {
    int type, handles;
    struct location location;
    void *metadata;
    unsigned char flags[8];
};

EXPORT int cuMemGetAllocationGranularity(size_t *bytes, const struct properties *properties, int option) {
    (void)properties, (void)option;
    *bytes = PAGE;
    return OK;
}
EXPORT int cuMemCreate(uint64_t *handle, size_t bytes, const struct properties *properties, uint64_t flags) {
    (void)flags;
    FAILS_IF_TOLD;
    if (!handle || !properties || !bytes || bytes % PAGE) return INVALID_VALUE;
    int card = properties->location.type == ON_DEVICE ? card_of(properties->location.id) : -1;
    if (properties->location.type == ON_DEVICE && card < 0) return INVALID_DEVICE;
    if (card >= 0 && take(card, bytes)) return OUT_OF_MEMORY;
    struct created *created = malloc(sizeof *created);
    *created = (struct created){.card = card, .bytes = bytes, .handles = 1};
    *handle = (uint64_t)created;
    return OK;
}
EXPORT int cuMemRelease(uint64_t handle) {
    FAILS_IF_TOLD;
    struct created *created = (struct created *)handle;
    if (!created) return INVALID_VALUE;
    pthread_mutex_lock(&threads);
    created->handles--;
    end_created(created);
    pthread_mutex_unlock(&threads);
    return OK;
}
EXPORT int cuMemAddressReserve(uint64_t *address, size_t bytes, size_t alignment, uint64_t wish,
                               uint64_t flags) {
    (void)alignment, (void)wish, (void)flags;
    pthread_mutex_lock(&threads);
    *address = room(bytes, 0);
    pthread_mutex_unlock(&threads);
    return OK;
}
EXPORT int cuMemAddressFree(uint64_t address, size_t bytes) {
    (void)address, (void)bytes;
    return OK;
}
EXPORT int cuMemMap(uint64_t address, size_t bytes, size_t offset, uint64_t handle, uint64_t flags) {
    (void)offset, (void)flags;
    FAILS_IF_TOLD;
    struct created *created = (struct created *)handle;
    if (!created || !address) return INVALID_VALUE;
    pthread_mutex_lock(&threads);
    created->mappings++;
    keep((struct block){.address = address, .bytes = bytes, .created = created});
    pthread_mutex_unlock(&threads);
    return OK;
}
/* May take several mappings at once. */
EXPORT int cuMemUnmap(uint64_t address, size_t bytes) {
    FAILS_IF_TOLD;
    int found = 0;
    pthread_mutex_lock(&threads);
    for (uint64_t at = address; at < address + bytes;) {
        struct block *block = find(at);
        uint64_t step = block && block->created ? block->bytes : PAGE;
        if (block && block->created) {
            end(block);
            found = 1;
        }
        at += step;
    }
    pthread_mutex_unlock(&threads);
    return found ? OK : INVALID_VALUE;
}
EXPORT int cuMemSetAccess(uint64_t address, size_t bytes, const void *access, size_t count) {
    (void)address, (void)bytes, (void)access, (void)count;
    return OK;
}
EXPORT int cuMemRetainAllocationHandle(uint64_t *handle, void *address) {
    FAILS_IF_TOLD;
    pthread_mutex_lock(&threads);
    struct block *block = find((uint64_t)address);
    int known = block && block->created;
    if (known) {
        block->created->handles++;
        *handle = (uint64_t)block->created;
    }
    pthread_mutex_unlock(&threads);
    return known ? OK : INVALID_VALUE;
}
/* Within a process: a file that only names the memory. */
EXPORT int cuMemExportToShareableHandle(int *shared, uint64_t handle, int type, uint64_t flags) {
    (void)type, (void)flags;
    *shared = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (*shared >= 0 && *shared < SHARED) exported[*shared] = (struct created *)handle;
    return *shared >= 0 && *shared < SHARED ? OK : INVALID_VALUE;
}
EXPORT int cuMemImportFromShareableHandle(uint64_t *handle, void *shared, int type) {
    (void)type;
    FAILS_IF_TOLD;
    struct created *created = (uint64_t)shared < SHARED ? exported[(uint64_t)shared] : NULL;
    if (!created) return INVALID_VALUE;
    pthread_mutex_lock(&threads);
    created->handles++;
    pthread_mutex_unlock(&threads);
    *handle = (uint64_t)created;
    return OK;
}
EXPORT int cuMemGetAllocationPropertiesFromHandle(struct properties *properties, uint64_t handle) {
    struct created *created = (struct created *)handle;
    *properties = (struct properties){.type = 1, .location = {created->card >= 0 ? ON_DEVICE : 2, 0}};
    for (int device = 0; device < device_count; device++)
        if (card_of(device) == created->card) properties->location.id = device;
    return OK;
}
