/* Arrays of cards. */
#include "stub.h"

#include <pthread.h>
#include <stdlib.h>

#define SPARSE 0x40
#define DEFERRED 0x80

struct array {
    int card;
    uint64_t bytes, asked;
    void *context;
    struct array *next;
};

static uint64_t rounded(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

static struct array *arrays;
static pthread_mutex_t threads = PTHREAD_MUTEX_INITIALIZER;

void forget_arrays(void) {
    arrays = NULL;
    pthread_mutex_init(&threads, NULL);
}

void free_arrays_of_context(void *context) {
    pthread_mutex_lock(&threads);
    for (struct array **at = &arrays; *at;) {
        struct array *array = *at;
        if (array->context != context) {
            at = &array->next;
            continue;
        }
        *at = array->next;
        give_back(array->card, array->bytes);
        free(array);
    }
    pthread_mutex_unlock(&threads);
}

struct shape {
    size_t width, height, depth;
    int format;
    unsigned channels, flags;
};
struct array_small {
    unsigned width, height;
    int format;
    unsigned channels;
};
struct array_wide {
    size_t width, height;
    int format;
    unsigned channels;
};
struct array3d_small {
    unsigned width, height, depth;
    int format;
    unsigned channels, flags;
};

static uint64_t element(int format) {
    switch (format) {
    case 0x01:
    case 0x08:
        return 1;
    case 0x02:
    case 0x09:
    case 0x10:
        return 2;
    default:
        return 4;
    }
}
/* In blocks of 64 bytes and 16 rows: as an H200 takes 986 MiB for 1,000 x 1,000 x 1,000 bytes. */
static uint64_t size_of(const struct shape *shape) {
    uint64_t height = shape->height > 1 ? rounded(shape->height, 16) : 1;
    uint64_t depth = shape->depth ? shape->depth : 1;
    return rounded(shape->width * element(shape->format) * shape->channels, 64) * height * depth;
}
static int make_array(void **made, const struct shape *shape, uint64_t bytes) {
    int device = current_device();
    if (device < 0) return INVALID_CONTEXT;
    if (!made || !shape->width || !shape->channels) return INVALID_VALUE;
    uint64_t taken = shape->flags & (SPARSE | DEFERRED) ? 0 : rounded(bytes, PAGE);
    if (taken && take(card_of(device), taken)) return OUT_OF_MEMORY;
    struct array *array = malloc(sizeof *array);
    *array = (struct array){.card = card_of(device), .bytes = taken, .asked = bytes};
    array->context = current_context();
    pthread_mutex_lock(&threads);
    array->next = arrays;
    arrays = array;
    pthread_mutex_unlock(&threads);
    *made = array;
    return OK;
}
static int end_array(void *handle) {
    pthread_mutex_lock(&threads);
    struct array **at = &arrays;
    while (*at && *at != handle) at = &(*at)->next;
    struct array *array = *at;
    if (array) {
        *at = array->next;
        if (array->bytes) give_back(array->card, array->bytes);
        free(array);
    }
    pthread_mutex_unlock(&threads);
    return array ? OK : INVALID_VALUE;
}

EXPORT int cuArrayCreate(void **array, const struct array_small *asked) {
    FAILS_IF_TOLD;
    if (!asked) return INVALID_VALUE;
    struct shape shape = {asked->width, asked->height, 0, asked->format, asked->channels, 0};
    return make_array(array, &shape, size_of(&shape));
}
EXPORT int cuArrayCreate_v2(void **array, const struct array_wide *asked) {
    FAILS_IF_TOLD;
    if (!asked) return INVALID_VALUE;
    struct shape shape = {asked->width, asked->height, 0, asked->format, asked->channels, 0};
    return make_array(array, &shape, size_of(&shape));
}
EXPORT int cuArray3DCreate(void **array, const struct array3d_small *asked) {
    FAILS_IF_TOLD;
    if (!asked) return INVALID_VALUE;
    struct shape shape = {asked->width,  asked->height,   asked->depth,
                          asked->format, asked->channels, asked->flags};
    return make_array(array, &shape, size_of(&shape));
}
EXPORT int cuArray3DCreate_v2(void **array, const struct shape *asked) {
    FAILS_IF_TOLD;
    return asked ? make_array(array, asked, size_of(asked)) : INVALID_VALUE;
}
EXPORT int cuArrayDestroy(void *array) {
    FAILS_IF_TOLD;
    return end_array(array);
}

EXPORT int cuMipmappedArrayCreate(void **array, const struct shape *asked, unsigned levels) {
    FAILS_IF_TOLD;
    if (!asked || !levels) return INVALID_VALUE;
    uint64_t bytes = 0;
    for (struct shape level = *asked; levels--;) {
        bytes += size_of(&level);
        level.width = level.width > 1 ? level.width / 2 : level.width;
        level.height = level.height > 1 ? level.height / 2 : level.height;
        level.depth = level.depth > 1 ? level.depth / 2 : level.depth;
    }
    return make_array(array, asked, bytes);
}
EXPORT int cuMipmappedArrayDestroy(void *array) {
    FAILS_IF_TOLD;
    return end_array(array);
}

/* Only arrays whose memory is mapped later have an answer. */
struct requirements {
    size_t bytes, alignment;
    unsigned rest[4];
};
static int requirements(struct requirements *needed, const struct array *array) {
    if (array->bytes) return INVALID_VALUE;
    *needed = (struct requirements){.bytes = array->asked, .alignment = 512};
    return OK;
}
EXPORT int cuArrayGetMemoryRequirements(struct requirements *needed, void *array, int device) {
    (void)device;
    return requirements(needed, array);
}
EXPORT int cuMipmappedArrayGetMemoryRequirements(struct requirements *needed, void *array, int device) {
    (void)device;
    return requirements(needed, array);
}
