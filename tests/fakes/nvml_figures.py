"""What NVIDIA's management library says of a real card, and of processes on it: by ``ctypes`` alone."""

import ctypes
from contextlib import suppress
from dataclasses import dataclass, field

MOST = 256
"""Processes on a card."""


class _Process(ctypes.Structure):
    _fields_ = (
        ("pid", ctypes.c_uint),
        ("used", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


def has_driver() -> bool:
    with suppress(OSError):
        ctypes.CDLL("libnvidia-ml.so.1")
        ctypes.CDLL("libcuda.so.1")
        return True
    return False


@dataclass(slots=True)
class RealCard:
    """The first card."""

    library: ctypes.CDLL = field(default_factory=lambda: ctypes.CDLL("libnvidia-ml.so.1"))
    handle: ctypes.c_void_p = field(default_factory=ctypes.c_void_p)

    def __post_init__(self) -> None:
        self._check(self.library.nvmlInit_v2())
        self._check(self.library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.handle)))

    def _check(self, code: int) -> None:
        if code:
            raise RuntimeError(f"NVML answers {code}")

    @property
    def uuid(self) -> str:
        text = ctypes.create_string_buffer(96)
        self._check(self.library.nvmlDeviceGetUUID(self.handle, text, 96))
        return text.value.decode()

    @property
    def name(self) -> str:
        text = ctypes.create_string_buffer(96)
        self._check(self.library.nvmlDeviceGetName(self.handle, text, 96))
        return text.value.decode()

    def processes(self) -> dict[int, int]:
        """PID -> bytes."""
        count, found = ctypes.c_uint(MOST), (_Process * MOST)()
        read = self.library.nvmlDeviceGetComputeRunningProcesses_v3
        self._check(read(self.handle, ctypes.byref(count), found))
        return {process.pid: process.used for process in found[: count.value]}
