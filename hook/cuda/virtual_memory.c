/* Memory that a program maps itself: it lives until its last handle is released and its last mapping is gone.
 */
#include "charge.h"
#include "driver.h"
#include "ledger.h"

static u64 last_memory;

static void drop_share(u64 memory) {
    struct allocation freed;
    if (allocations_add_share(MEMORY, memory, -1) == 0 && allocations_take(MEMORY, memory, &freed))
        ledger_give_back(freed.card, freed.bytes);
}

static bool add_handle(CUhandle handle, u64 memory) {
    struct allocation entry = {.key = handle, .bytes = 1, .share = memory, .kind = HANDLE};
    return allocations_add(&entry, NULL);
}

/* The properties say where the memory lies, not the current context: it may be the host's. */
CUresult cuMemCreate(CUhandle *handle, size_t bytes, const struct allocation_properties *properties,
                     u64 flags) {
    struct charge charge;
    bool on_card = driver_begin() && properties && properties->location.type == LOCATION_DEVICE;
    int card = on_card ? card_of_device(properties->location.id) : UNKNOWN_CARD;
    if (!charge_begin_on(&charge, card, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuMemCreate)(handle, bytes, properties, flags);
    u64 memory = __atomic_add_fetch(&last_memory, 1, __ATOMIC_RELAXED);
    charge_settle(&charge, result, MEMORY, handle ? memory : 0);
    if (result != CUDA_SUCCESS || card == UNKNOWN_CARD || !handle) return result;
    allocations_add_share(MEMORY, memory, 1);
    if (!add_handle(*handle, memory)) drop_share(memory);
    return result;
}

CUresult cuMemRelease(CUhandle handle) {
    struct allocation entry;
    bool known = driver_begin() && allocations_find(HANDLE, handle, &entry);
    /* The last release: from the driver's call on the same number may be another's. */
    bool last = known && entry.bytes == 1 && allocations_take(HANDLE, handle, &entry);
    CUresult result = REAL(cuMemRelease)(handle);
    if (!known) return result;
    if (result != CUDA_SUCCESS) {
        if (last) allocations_add(&entry, NULL);
    } else if (last ||
               (allocations_add_bytes(HANDLE, handle, -1) == 0 && allocations_take(HANDLE, handle, &entry))) {
        drop_share(entry.share);
    }
    return result;
}

CUresult cuMemRetainAllocationHandle(CUhandle *handle, void *address) {
    struct allocation entry;
    bool limited = driver_begin();
    CUresult result = REAL(cuMemRetainAllocationHandle)(handle, address);
    if (!limited || result != CUDA_SUCCESS || !handle || allocations_add_bytes(HANDLE, *handle, 1))
        return result;
    if (allocations_find_mapping((u64)address, &entry) && add_handle(*handle, entry.share))
        allocations_add_share(MEMORY, entry.share, 1);
    return result;
}

/* Memory of another process counts there. Memory of this one has one handle more to be released. */
CUresult cuMemImportFromShareableHandle(CUhandle *handle, void *shared, int type) {
    bool limited = driver_begin();
    CUresult result = REAL(cuMemImportFromShareableHandle)(handle, shared, type);
    if (limited && result == CUDA_SUCCESS && handle) allocations_add_bytes(HANDLE, *handle, 1);
    return result;
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUhandle handle, u64 flags) {
    struct allocation entry;
    bool limited = driver_begin();
    CUresult result = REAL(cuMemMap)(address, bytes, offset, handle, flags);
    if (!limited || result != CUDA_SUCCESS || !allocations_find(HANDLE, handle, &entry)) return result;
    struct allocation mapping = {.key = address, .bytes = bytes, .share = entry.share, .kind = MAPPING};
    if (allocations_add(&mapping, NULL)) allocations_add_share(MEMORY, entry.share, 1);
    return result;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
    struct allocation mapping;
    bool limited = driver_begin();
    CUresult result = REAL(cuMemUnmap)(address, bytes);
    if (!limited || result != CUDA_SUCCESS) return result;
    while (bytes && allocations_take_mapping(address, bytes, &mapping)) {
        drop_share(mapping.share);
        if (mapping.key != address) continue;
        address += mapping.bytes;
        bytes -= mapping.bytes < bytes ? mapping.bytes : bytes;
    }
    return result;
}
