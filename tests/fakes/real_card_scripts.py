"""Programs in Python for a real card, as text: each runs in a process of its own, with or without the hook.

They begin in the folder of the checkout.
"""

IMPORTS = """
import ctypes, os, sys
sys.path.insert(0, os.getcwd())
from tests.fakes.nvml_figures import RealCard
"""
HEAD = (
    IMPORTS
    + """
cuda = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
cuda.cuInit(0); cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0); cuda.cuCtxSetCurrent(context)
card = RealCard()
def seen(): return card.processes().get(os.getpid(), 0) >> 20
def counted():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    return (total.value - free.value) >> 20
before = seen(), counted()
"""
)

MODULE = (
    HEAD
    + """
module = ctypes.c_void_p()
code = cuda.cuModuleLoadData(ctypes.byref(module), {ptx!r})
print("code", code, "NVML", seen() - before[0], "hook", counted() - before[1])
"""
)

GRAPH = (
    HEAD
    + """
stream, graph, runnable, address = (ctypes.c_void_p() for _ in range(4))
codes = [
    cuda.cuStreamCreate(ctypes.byref(stream), 1),
    cuda.cuStreamBeginCapture_v2(stream, 0),
    cuda.cuMemAllocAsync(ctypes.byref(address), ctypes.c_size_t(9 << 30), stream),
    cuda.cuStreamEndCapture(stream, ctypes.byref(graph)),
]
codes.append(cuda.cuGraphInstantiateWithFlags(ctypes.byref(runnable), graph, ctypes.c_uint64(0)))
if not codes[-1]:
    codes += [cuda.cuGraphLaunch(runnable, stream), cuda.cuStreamSynchronize(stream)]
print("codes", codes, "NVML", seen() - before[0], "hook", counted() - before[1])
"""
)

IPC_OWNER = (
    HEAD
    + """
address, handle = ctypes.c_uint64(), ctypes.create_string_buffer(64)
code = cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(1 << 30))
code = code or cuda.cuIpcGetMemHandle(handle, address)
print(handle.raw.hex(), flush=True)
print("code", code, "NVML", seen() - before[0], "hook", counted() - before[1], flush=True)
sys.stdin.read()
"""
)

IPC_USER = (
    HEAD
    + """
class Handle(ctypes.Structure):
    _fields_ = (("bytes", ctypes.c_char * 64),)
handle = Handle.from_buffer_copy(bytes.fromhex("{handle}"))
address = ctypes.c_uint64()
code = cuda.cuIpcOpenMemHandle_v2(ctypes.byref(address), handle, 1)
print("code", code, "NVML", seen() - before[0], "hook", counted() - before[1])
"""
)

TORCH = (
    IMPORTS
    + """
import torch
free, total = torch.cuda.mem_get_info()
print("free", free >> 20, "total", total >> 20, "name", torch.cuda.get_device_name(0))
print("total_memory", torch.cuda.get_device_properties(0).total_memory >> 20)
kept = []
try:
    while True:
        kept.append(torch.empty(256 << 20, dtype=torch.uint8, device="cuda"))
except torch.OutOfMemoryError as error:
    print("OOM after", len(kept) * 256, "MiB:", str(error).splitlines()[0][:400])
print("NVML", RealCard().processes().get(os.getpid(), 0) >> 20)
del kept
torch.cuda.empty_cache()
product = torch.ones(4096, 4096, device="cuda") @ torch.ones(4096, 4096, device="cuda")
torch.cuda.synchronize()
print("product", float(product[0, 0]), "NVML", RealCard().processes().get(os.getpid(), 0) >> 20)
"""
)

TORCH_BESIDE = (
    IMPORTS
    + """
import torch
kept = []
try:
    while True:
        kept.append(torch.empty(128 << 20, dtype=torch.uint8, device="cuda"))
except torch.OutOfMemoryError:
    seen = RealCard().processes().get(os.getpid(), 0) >> 20
    print("OOM after", len(kept) * 128, "MiB, NVML", seen, flush=True)
sys.stdin.read()
"""
)
