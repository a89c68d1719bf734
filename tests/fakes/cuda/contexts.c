/* Devices and contexts. */
#include "stub.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH 64

struct context {
    int device, primary, dead;
    struct context *next;
};

static struct context primaries[CARDS], *created;
static int retained[CARDS];
static pthread_mutex_t threads = PTHREAD_MUTEX_INITIALIZER;
static __thread struct context *stack[DEPTH];
static __thread int depth;

static int live(const struct context *context) {
    if (!context || context->dead) return 0;
    return !context->primary || retained[context->device] > 0;
}

void *current_context(void) { return depth && live(stack[depth - 1]) ? stack[depth - 1] : NULL; }

int current_device(void) {
    struct context *context = current_context();
    return context ? context->device : -1;
}

void forget_contexts(void) {
    memset(retained, 0, sizeof retained);
    for (struct context *context = created; context; context = context->next) context->dead = 1;
    depth = 0;
    pthread_mutex_init(&threads, NULL);
}

EXPORT int cuInit(unsigned flags) {
    (void)flags;
    FAILS_IF_TOLD;
    return initialize();
}

EXPORT int cuDriverGetVersion(int *version) {
    *version = driver_version;
    return OK;
}

EXPORT int cuDeviceGetCount(int *count) {
    if (!initialized()) return NOT_INITIALIZED;
    *count = device_count;
    return OK;
}

EXPORT int cuDeviceGet(int *device, int ordinal) {
    if (!initialized()) return NOT_INITIALIZED;
    if (card_of(ordinal) < 0) return INVALID_DEVICE;
    *device = ordinal;
    return OK;
}

EXPORT int cuDeviceGetName(char *name, int size, int device) {
    if (card_of(device) < 0) return INVALID_DEVICE;
    snprintf(name, (size_t)size, "Stub");
    return OK;
}

EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)attribute;
    if (card_of(device) < 0) return INVALID_DEVICE;
    *value = 1;
    return OK;
}

static int uuid(uint8_t *bytes, int device) {
    if (!initialized()) return NOT_INITIALIZED;
    if (card_of(device) < 0) return INVALID_DEVICE;
    memcpy(bytes, uuid_of(card_of(device)), 16);
    return OK;
}
EXPORT int cuDeviceGetUuid(uint8_t *bytes, int device) {
    FAILS_IF_TOLD;
    return uuid(bytes, device);
}
EXPORT int cuDeviceGetUuid_v2(uint8_t *bytes, int device) {
    FAILS_IF_TOLD;
    return uuid(bytes, device);
}

EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device) {
    FAILS_IF_TOLD;
    if (!initialized()) return NOT_INITIALIZED;
    if (card_of(device) < 0) return INVALID_DEVICE;
    if (!bytes) return INVALID_VALUE;
    *bytes = memory_of(card_of(device));
    return OK;
}

EXPORT int cuDeviceTotalMem(unsigned *bytes, int device) {
    size_t all;
    int code = cuDeviceTotalMem_v2(&all, device);
    if (code) return code;
    *bytes = all > UINT32_MAX ? UINT32_MAX : (unsigned)all;
    return OK;
}

/* Where either pointer may be NULL, as with the driver. */
EXPORT int cuMemGetInfo_v2(size_t *unused, size_t *total) {
    FAILS_IF_TOLD;
    int device = current_device();
    if (device < 0) return INVALID_CONTEXT;
    int card = card_of(device);
    if (unused) *unused = memory_of(card) - used_of(card);
    if (total) *total = memory_of(card);
    return OK;
}

EXPORT int cuMemGetInfo(unsigned *unused, unsigned *total) {
    size_t both[2];
    int code = cuMemGetInfo_v2(&both[0], &both[1]);
    if (code) return code;
    if (unused) *unused = both[0] > UINT32_MAX ? UINT32_MAX : (unsigned)both[0];
    if (total) *total = both[1] > UINT32_MAX ? UINT32_MAX : (unsigned)both[1];
    return OK;
}

static int retain(struct context **context, int device) {
    if (!initialized()) return NOT_INITIALIZED;
    if (card_of(device) < 0) return INVALID_DEVICE;
    pthread_mutex_lock(&threads);
    int code = retained[device] ? OK : take(card_of(device), context_size);
    if (!code) {
        retained[device]++;
        primaries[device] = (struct context){.device = device, .primary = 1};
        if (context) *context = &primaries[device];
    }
    pthread_mutex_unlock(&threads);
    return code;
}

static void end_primary(int device) {
    retained[device] = 0;
    free_of_context(&primaries[device]);
    give_back(card_of(device), context_size);
}

static int release(int device) {
    if (card_of(device) < 0) return INVALID_DEVICE;
    pthread_mutex_lock(&threads);
    int code = retained[device] ? OK : INVALID_CONTEXT;
    if (!code && retained[device] == 1)
        end_primary(device);
    else if (!code)
        retained[device]--;
    pthread_mutex_unlock(&threads);
    return code;
}

static int reset(int device) {
    if (card_of(device) < 0) return INVALID_DEVICE;
    pthread_mutex_lock(&threads);
    if (retained[device]) end_primary(device);
    pthread_mutex_unlock(&threads);
    return OK;
}

EXPORT int cuDevicePrimaryCtxRetain(void **context, int device) {
    FAILS_IF_TOLD;
    if (!context) return INVALID_VALUE;
    return retain((struct context **)context, device);
}
EXPORT int cuDevicePrimaryCtxRelease(int device) { return release(device); }
EXPORT int cuDevicePrimaryCtxRelease_v2(int device) { return release(device); }
EXPORT int cuDevicePrimaryCtxReset(int device) { return reset(device); }
EXPORT int cuDevicePrimaryCtxReset_v2(int device) { return reset(device); }
EXPORT int cuDevicePrimaryCtxSetFlags(int device, unsigned flags) {
    (void)device, (void)flags;
    return OK;
}
EXPORT int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags) {
    (void)device, (void)flags;
    return OK;
}
EXPORT int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
    if (card_of(device) < 0) return INVALID_DEVICE;
    *flags = 0;
    *active = retained[device] > 0;
    return OK;
}

static int create(struct context **context, int device) {
    if (!initialized()) return NOT_INITIALIZED;
    if (card_of(device) < 0) return INVALID_DEVICE;
    if (!context) return INVALID_VALUE;
    if (depth == DEPTH) return OUT_OF_MEMORY;
    int code = take(card_of(device), context_size);
    if (code) return code;
    struct context *made = calloc(1, sizeof *made);
    made->device = device;
    pthread_mutex_lock(&threads);
    made->next = created;
    created = made;
    pthread_mutex_unlock(&threads);
    stack[depth++] = made;
    *context = made;
    return OK;
}

EXPORT int cuCtxCreate(void **context, unsigned flags, int device) {
    (void)flags;
    FAILS_IF_TOLD;
    return create((struct context **)context, device);
}
EXPORT int cuCtxCreate_v2(void **context, unsigned flags, int device) {
    (void)flags;
    FAILS_IF_TOLD;
    return create((struct context **)context, device);
}
EXPORT int cuCtxCreate_v3(void **context, void *affinity, int count, unsigned flags, int device) {
    (void)affinity, (void)count, (void)flags;
    FAILS_IF_TOLD;
    return create((struct context **)context, device);
}
EXPORT int cuCtxCreate_v4(void **context, void *parameters, unsigned flags, int device) {
    (void)parameters, (void)flags;
    FAILS_IF_TOLD;
    return create((struct context **)context, device);
}

static int destroy(struct context *context) {
    if (!live(context) || context->primary) return INVALID_CONTEXT;
    context->dead = 1;
    free_of_context(context);
    give_back(card_of(context->device), context_size);
    if (depth && stack[depth - 1] == context) depth--;
    return OK;
}
EXPORT int cuCtxDestroy(void *context) {
    FAILS_IF_TOLD;
    return destroy(context);
}
EXPORT int cuCtxDestroy_v2(void *context) {
    FAILS_IF_TOLD;
    return destroy(context);
}
EXPORT int cuCtxAttach(void **context, unsigned flags) {
    (void)flags;
    *context = current_context();
    return OK;
}
EXPORT int cuCtxDetach(void *context) { return destroy(context); }

EXPORT int cuCtxGetCurrent(void **context) {
    *context = current_context();
    return OK;
}

EXPORT int cuCtxSetCurrent(void *context) {
    if (depth) depth--;
    if (context) stack[depth++] = context;
    return OK;
}

static int push(void *context) {
    if (!live(context) || depth == DEPTH) return INVALID_CONTEXT;
    stack[depth++] = context;
    return OK;
}
EXPORT int cuCtxPushCurrent(void *context) { return push(context); }
EXPORT int cuCtxPushCurrent_v2(void *context) { return push(context); }

static int pop(void **context) {
    if (!depth) return INVALID_CONTEXT;
    depth--;
    if (context) *context = stack[depth];
    return OK;
}
EXPORT int cuCtxPopCurrent(void **context) { return pop(context); }
EXPORT int cuCtxPopCurrent_v2(void **context) { return pop(context); }

EXPORT int cuCtxGetDevice(int *device) {
    int current = current_device();
    if (current < 0) return INVALID_CONTEXT;
    *device = current;
    return OK;
}
EXPORT int cuCtxGetDevice_v2(int *device, void *context) {
    if (!context) return cuCtxGetDevice(device);
    if (!live(context)) return INVALID_CONTEXT;
    *device = ((struct context *)context)->device;
    return OK;
}
EXPORT int cuCtxSynchronize(void) {
    shrink_pools();
    return OK;
}
EXPORT int cuCtxSynchronize_v2(void *context) {
    (void)context;
    shrink_pools();
    return OK;
}
EXPORT int cuStreamSynchronize(void *stream) {
    (void)stream;
    shrink_pools();
    return OK;
}
EXPORT int cuStreamSynchronize_ptsz(void *stream) {
    (void)stream;
    shrink_pools();
    return OK;
}
EXPORT int cuEventSynchronize(void *event) {
    (void)event;
    shrink_pools();
    return OK;
}
EXPORT int cuStreamCreate(void **stream, unsigned flags) {
    (void)flags;
    *stream = &primaries;
    return OK;
}

/* A green context is a part of the primary one, and keeps it. */
EXPORT int cuGreenCtxCreate(void **green, void *resources, int device, unsigned flags) {
    (void)resources, (void)flags;
    FAILS_IF_TOLD;
    if (!green) return INVALID_VALUE;
    int code = retain(NULL, device);
    if (code) return code;
    int *made = malloc(sizeof *made);
    *made = device;
    *green = made;
    return OK;
}
EXPORT int cuGreenCtxDestroy(void *green) {
    int device = *(int *)green;
    free(green);
    return release(device);
}
EXPORT int cuCtxFromGreenCtx(void **context, void *green) {
    *context = &primaries[*(int *)green];
    return OK;
}
