/* Short names of integers, and CUDA's types as far as the hook looks into them. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t i64;

typedef int CUresult;
typedef int CUdevice;
typedef u64 CUdeviceptr;
typedef u64 CUhandle; /* what cuMemCreate makes */
typedef void *CUcontext, *CUgreenCtx, *CUstream, *CUevent, *CUarray, *CUmipmappedArray, *CUmemoryPool;

#define CUDA_SUCCESS 0
#define CUDA_ERROR_OUT_OF_MEMORY 2
#define CUDA_ERROR_NOT_INITIALIZED 3

/* Of both: where memory lies. */
struct location {
    int type;
    int id;
};
#define LOCATION_DEVICE 1

struct array_v1 {
    unsigned width, height;
    int format;
    unsigned channels;
};
struct array_v2 {
    size_t width, height;
    int format;
    unsigned channels;
};
struct array3d_v1 {
    unsigned width, height, depth;
    int format;
    unsigned channels, flags;
};
struct array3d_v2 {
    size_t width, height, depth;
    int format;
    unsigned channels, flags;
};
/* The begin of the driver's structures; the rest is not looked into. */
struct pool_properties {
    int allocation_type, handle_types;
    struct location location;
};
struct allocation_properties {
    int type, handle_types;
    struct location location;
};
