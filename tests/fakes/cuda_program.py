"""A program that takes memory of a card by CUDA's driver API, and keeps it until its input ends.

Run as ``python cuda_program.py BYTES``; prints a line when it has the memory. Needs the driver alone.
"""

import ctypes
import sys
from collections.abc import Callable


def main() -> None:
    cuda = ctypes.CDLL("libcuda.so.1")
    device, context, address = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
    steps: tuple[tuple[str, Callable[[], int]], ...] = (
        ("cuInit", lambda: cuda.cuInit(0)),
        ("cuDeviceGet", lambda: cuda.cuDeviceGet(ctypes.byref(device), 0)),
        ("cuCtxCreate_v2", lambda: cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device)),
        (
            "cuMemAlloc_v2",
            lambda: cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(int(sys.argv[1]))),
        ),
    )
    for name, step in steps:
        if code := step():
            raise SystemExit(f"{name}: {code}")
    print("taken", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
