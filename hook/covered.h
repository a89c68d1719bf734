/* Prototypes of the functions in functions.def. */
#pragma once
#include "types.h"

#define EXPORT __attribute__((visibility("default")))

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

EXPORT CUresult cuGetProcAddress(const char *symbol, void **function, int version, u64 flags);
EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, u64 flags, int *status);
EXPORT CUresult cuGetProcAddress_v2_ptsz(const char *symbol, void **function, int version, u64 flags,
                                         int *status);

EXPORT CUresult cuDeviceTotalMem(unsigned *bytes, CUdevice device);
EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device);
EXPORT CUresult cuMemGetInfo(unsigned *available, unsigned *total);
EXPORT CUresult cuMemGetInfo_v2(size_t *available, size_t *total);

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice device);
EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
EXPORT CUresult cuDevicePrimaryCtxReset(CUdevice device);
EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device);
EXPORT CUresult cuCtxCreate(CUcontext *context, unsigned flags, CUdevice device);
EXPORT CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device);
EXPORT CUresult cuCtxCreate_v3(CUcontext *context, void *affinities, int count, unsigned flags,
                               CUdevice device);
EXPORT CUresult cuCtxCreate_v4(CUcontext *context, void *parameters, unsigned flags, CUdevice device);
EXPORT CUresult cuCtxDestroy(CUcontext context);
EXPORT CUresult cuCtxDestroy_v2(CUcontext context);
EXPORT CUresult cuCtxDetach(CUcontext context);
EXPORT CUresult cuGreenCtxCreate(CUgreenCtx *context, void *resources, CUdevice device, unsigned flags);
EXPORT CUresult cuGreenCtxDestroy(CUgreenCtx context);

EXPORT CUresult cuMemAlloc(unsigned *address, unsigned bytes);
EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes);
EXPORT CUresult cuMemAllocPitch(unsigned *address, unsigned *pitch, unsigned width, unsigned height,
                                unsigned element);
EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height,
                                   unsigned element);
EXPORT CUresult cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned flags);
EXPORT CUresult cuMemFree(unsigned address);
EXPORT CUresult cuMemFree_v2(CUdeviceptr address);

EXPORT CUresult cuArrayCreate(CUarray *array, const struct array_v1 *description);
EXPORT CUresult cuArrayCreate_v2(CUarray *array, const struct array_v2 *description);
EXPORT CUresult cuArray3DCreate(CUarray *array, const struct array3d_v1 *description);
EXPORT CUresult cuArray3DCreate_v2(CUarray *array, const struct array3d_v2 *description);
EXPORT CUresult cuArrayDestroy(CUarray array);
EXPORT CUresult cuMipmappedArrayCreate(CUmipmappedArray *array, const struct array3d_v2 *description,
                                       unsigned levels);
EXPORT CUresult cuMipmappedArrayDestroy(CUmipmappedArray array);

EXPORT CUresult cuMemCreate(CUhandle *handle, size_t bytes, const struct allocation_properties *properties,
                            u64 flags);
EXPORT CUresult cuMemRelease(CUhandle handle);
EXPORT CUresult cuMemRetainAllocationHandle(CUhandle *handle, void *address);
EXPORT CUresult cuMemImportFromShareableHandle(CUhandle *handle, void *shared, int type);
EXPORT CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUhandle handle, u64 flags);
EXPORT CUresult cuMemUnmap(CUdeviceptr address, size_t bytes);

EXPORT CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream);
EXPORT CUresult cuMemAllocAsync_ptsz(CUdeviceptr *address, size_t bytes, CUstream stream);
EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool,
                                        CUstream stream);
EXPORT CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *address, size_t bytes, CUmemoryPool pool,
                                             CUstream stream);
EXPORT CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream);
EXPORT CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream);
EXPORT CUresult cuMemPoolCreate(CUmemoryPool *pool, const struct pool_properties *properties);
EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool);
EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep);
EXPORT CUresult cuCtxSynchronize(void);
EXPORT CUresult cuCtxSynchronize_v2(CUcontext context);
EXPORT CUresult cuStreamSynchronize(CUstream stream);
EXPORT CUresult cuStreamSynchronize_ptsz(CUstream stream);
EXPORT CUresult cuEventSynchronize(CUevent event);

/* The driver's own, called through REAL. */
CUresult cuDeviceGetUuid(u8 *uuid, CUdevice device);
CUresult cuDeviceGetUuid_v2(u8 *uuid, CUdevice device);
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active);
CUresult cuCtxGetCurrent(CUcontext *context);
CUresult cuCtxGetDevice(CUdevice *device);
CUresult cuDeviceGetCount(int *count);
CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device);
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device);
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value);
CUresult cuStreamIsCapturing(CUstream stream, int *status);
CUresult cuStreamIsCapturing_ptsz(CUstream stream, int *status);
CUresult cuStreamGetDevice(CUstream stream, CUdevice *device);
