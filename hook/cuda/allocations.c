/* What this process has allocated: a hash table with linear probing, in memory of its own. */
#include "allocations.h"
#include "mutex.h"
#include "system.h"

#define FIRST_CAPACITY 128 /* a power of 2 */

static struct mutex mutex;
static struct allocation *table;
static size_t capacity, count;

/* The memory is not given back: the parent may have been about to replace it. */
void allocations_forget(void) {
    mutex.state = 0;
    table = NULL;
    capacity = count = 0;
}

/* Fibonacci hashing takes the high bits: addresses differ in the middle ones, and are 0 in the low ones. */
static size_t home_of(enum kind kind, u64 key) {
    u64 hash = (key ^ (u64)kind << 60) * 0x9e3779b97f4a7c15ULL;
    return (size_t)(hash >> 20) & (capacity - 1);
}

static struct allocation *find(enum kind kind, u64 key) {
    if (!capacity) return NULL;
    for (size_t i = home_of(kind, key); table[i].kind; i = (i + 1) & (capacity - 1))
        if (table[i].key == key && table[i].kind == kind) return &table[i];
    return NULL;
}

static void insert(const struct allocation *allocation) {
    size_t i = home_of(allocation->kind, allocation->key);
    while (table[i].kind) i = (i + 1) & (capacity - 1);
    table[i] = *allocation;
    count++;
}

static bool grow(void) {
    struct allocation *old = table;
    size_t old_capacity = capacity, new_capacity = capacity ? capacity * 2 : FIRST_CAPACITY;
    struct allocation *new = map_memory(new_capacity * sizeof *new);
    if (!new) return false;
    table = new;
    capacity = new_capacity;
    count = 0;
    for (size_t i = 0; i < old_capacity; i++)
        if (old[i].kind) insert(&old[i]);
    if (old) unmap_memory(old, old_capacity * sizeof *old);
    return true;
}

static bool has_room(void) { return (count + 1) * 3 <= capacity * 2 || grow(); }

/* Entries behind the gap move up, so that a look for them meets no gap. */
static void erase(struct allocation *entry) {
    size_t gap = (size_t)(entry - table), mask = capacity - 1;
    count--;
    for (size_t i = (gap + 1) & mask; table[i].kind; i = (i + 1) & mask) {
        size_t home = home_of(table[i].kind, table[i].key);
        if (((i - home) & mask) < ((i - gap) & mask)) continue;
        table[gap] = table[i];
        gap = i;
    }
    table[gap].kind = NOTHING;
}

bool allocations_add(const struct allocation *allocation, struct allocation *replaced) {
    HOLD(&mutex);
    struct allocation *stale = find(allocation->kind, allocation->key);
    if (replaced) *replaced = stale ? *stale : (struct allocation){.kind = NOTHING};
    if (stale) erase(stale);
    if (!has_room()) return false;
    insert(allocation);
    return true;
}

bool allocations_hold(const struct allocation *allocation) {
    HOLD(&mutex);
    struct allocation *entry = find(allocation->kind, allocation->key);
    if (entry) entry->share++;
    if (entry || !has_room()) return true;
    insert(allocation);
    return false;
}

bool allocations_find(enum kind kind, u64 key, struct allocation *found) {
    HOLD(&mutex);
    const struct allocation *entry = find(kind, key);
    if (entry) *found = *entry;
    return entry != NULL;
}

bool allocations_take(enum kind kind, u64 key, struct allocation *taken) {
    HOLD(&mutex);
    struct allocation *entry = find(kind, key);
    if (!entry) return false;
    *taken = *entry;
    erase(entry);
    return true;
}

u64 allocations_add_share(enum kind kind, u64 key, i64 change) {
    HOLD(&mutex);
    struct allocation *entry = find(kind, key);
    return entry ? entry->share += (u64)change : 0;
}

u64 allocations_add_bytes(enum kind kind, u64 key, i64 change) {
    HOLD(&mutex);
    struct allocation *entry = find(kind, key);
    return entry ? entry->bytes += (u64)change : 0;
}

bool allocations_find_mapping(u64 address, struct allocation *found) {
    HOLD(&mutex);
    for (size_t i = 0; i < capacity; i++) {
        const struct allocation *entry = &table[i];
        if (entry->kind != MAPPING || address - entry->key >= entry->bytes) continue;
        *found = *entry;
        return true;
    }
    return false;
}

/* Most programs unmap what they have mapped: then no others are looked at. */
static struct allocation *find_mapping_within(u64 address, u64 bytes) {
    struct allocation *first = find(MAPPING, address);
    for (size_t i = 0; i < capacity && !first; i++)
        if (table[i].kind == MAPPING && table[i].key - address < bytes) first = &table[i];
    return first;
}

bool allocations_take_mapping(u64 address, u64 bytes, struct allocation *taken) {
    HOLD(&mutex);
    struct allocation *entry = find_mapping_within(address, bytes);
    if (!entry) return false;
    *taken = *entry;
    erase(entry);
    return true;
}

static bool ends_with(const struct allocation *allocation, u32 owner, int card) {
    bool of_context = allocation->kind == ADDRESS || allocation->kind == PAGE || allocation->kind == ARRAY;
    return of_context && allocation->owner == owner && allocation->card == card;
}

u64 allocations_take_of(u32 owner, int card) {
    u64 bytes = 0;
    HOLD(&mutex);
    for (size_t i = 0; i < capacity;) {
        if (!ends_with(&table[i], owner, card)) {
            i++;
            continue;
        }
        bytes += table[i].bytes;
        erase(&table[i]); /* another entry may be here now */
    }
    return bytes;
}
