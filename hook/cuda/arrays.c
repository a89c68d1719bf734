/* Arrays. The driver does not tell their size (cuArrayGetMemoryRequirements answers only for arrays without
 * memory of their own, and the difference of two cuMemGetInfo is also that of all other processes), so it is
 * computed. */
#include "charge.h"
#include "driver.h"

/* Without memory of their own: it is mapped later, and counted by cuMemCreate. */
#define SPARSE 0x40
#define DEFERRED_MAPPING 0x80

/* A card keeps arrays in blocks of so many bytes and rows (see docs/real-card.md). */
#define BLOCK_BYTES 64
#define BLOCK_ROWS 16

struct shape {
    u64 width, height, depth;
    int format;
    unsigned channels, flags;
};

/* What nobody can have: no sum of a few is an overflow. */
#define TOO_LARGE (1ULL << 60)

static u64 product(u64 one, u64 other) {
    u64 result;
    return __builtin_mul_overflow(one, other, &result) || result > TOO_LARGE ? TOO_LARGE : result;
}

static u64 multiple(u64 value, u64 of) { return value > TOO_LARGE ? TOO_LARGE : (value + of - 1) / of * of; }

/* Of one channel. Formats of compressed textures and of video are no more than this. */
static u64 bytes_of_format(int format) {
    switch (format) {
    case 0x01: /* unsigned and signed 8 bits */
    case 0x08:
        return 1;
    case 0x02: /* unsigned and signed 16 bits, half */
    case 0x09:
    case 0x10:
        return 2;
    default:
        return 4;
    }
}

static u64 bytes_of_level(const struct shape *shape) {
    u64 row =
        product(product(shape->width, bytes_of_format(shape->format)), shape->channels ? shape->channels : 1);
    u64 rows = shape->height > 1 ? multiple(shape->height, BLOCK_ROWS) : 1;
    return product(product(multiple(row, BLOCK_BYTES), rows), shape->depth ? shape->depth : 1);
}

static u64 half(u64 length) { return length > 1 ? length / 2 : length; }

static u64 bytes_of(struct shape shape, unsigned levels) {
    u64 bytes = 0;
    if (shape.flags & (SPARSE | DEFERRED_MAPPING)) return 0;
    for (; levels && (shape.width > 0); levels--) {
        bytes += bytes_of_level(&shape);
        if (bytes > TOO_LARGE) return TOO_LARGE;
        if (shape.width <= 1 && shape.height <= 1 && shape.depth <= 1) break;
        shape.width = half(shape.width);
        shape.height = half(shape.height);
        shape.depth = half(shape.depth);
    }
    return bytes;
}

/* Of the four structures, which differ only in the types of their lengths. */
#define SHAPE2(d)                                                                                            \
    ((d) ? (struct shape){(d)->width, (d)->height, 0, (d)->format, (d)->channels, 0} : (struct shape){0})
#define SHAPE3(d)                                                                                            \
    ((d) ? (struct shape){(d)->width, (d)->height, (d)->depth, (d)->format, (d)->channels, (d)->flags}       \
         : (struct shape){0})

CUresult cuArrayCreate(CUarray *array, const struct array_v1 *description) {
    struct charge charge;
    if (!charge_begin(&charge, bytes_of(SHAPE2(description), 1))) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuArrayCreate)(array, description);
    return charge_settle(&charge, result, ARRAY, array ? (u64)*array : 0);
}

CUresult cuArrayCreate_v2(CUarray *array, const struct array_v2 *description) {
    struct charge charge;
    if (!charge_begin(&charge, bytes_of(SHAPE2(description), 1))) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuArrayCreate_v2)(array, description);
    return charge_settle(&charge, result, ARRAY, array ? (u64)*array : 0);
}

CUresult cuArray3DCreate(CUarray *array, const struct array3d_v1 *description) {
    struct charge charge;
    if (!charge_begin(&charge, bytes_of(SHAPE3(description), 1))) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuArray3DCreate)(array, description);
    return charge_settle(&charge, result, ARRAY, array ? (u64)*array : 0);
}

CUresult cuArray3DCreate_v2(CUarray *array, const struct array3d_v2 *description) {
    struct charge charge;
    if (!charge_begin(&charge, bytes_of(SHAPE3(description), 1))) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuArray3DCreate_v2)(array, description);
    return charge_settle(&charge, result, ARRAY, array ? (u64)*array : 0);
}

CUresult cuArrayDestroy(CUarray array) {
    struct release release;
    release_begin(&release, ARRAY, (u64)array);
    return release_settle(&release, REAL(cuArrayDestroy)(array));
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *array, const struct array3d_v2 *description,
                                unsigned levels) {
    struct charge charge;
    if (!charge_begin(&charge, bytes_of(SHAPE3(description), levels))) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuMipmappedArrayCreate)(array, description, levels);
    return charge_settle(&charge, result, ARRAY, array ? (u64)*array : 0);
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) {
    struct release release;
    release_begin(&release, ARRAY, (u64)array);
    return release_settle(&release, REAL(cuMipmappedArrayDestroy)(array));
}
