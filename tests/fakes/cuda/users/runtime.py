"""Opens NVIDIA's runtime, and tells which of the driver's functions it got from which library.

Run as ``python runtime.py LIBRARY``. The runtime asks for all functions at its first call, and keeps
their addresses in its own data: prints, for each library, the names of those that are there.
"""

import ctypes
import json
import struct
import sys
from pathlib import Path


def main() -> None:
    ctypes.CDLL("libcuda.so.1")  # stays, where the runtime closes it after an error
    runtime = ctypes.CDLL(sys.argv[1])
    address = ctypes.c_void_p()
    runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(1))
    maps = [Mapping(line) for line in Path("/proc/self/maps").read_text().splitlines()]
    found: dict[str, set[int]] = {}
    for number in addresses_in(data_of(maps, Path(sys.argv[1]).name)):
        for mapping in maps:
            if "x" in mapping.rights and mapping.start <= number < mapping.end:
                found.setdefault(mapping.name, set()).add(number)
    print(json.dumps({name: sorted(map(name_of, numbers)) for name, numbers in found.items()}))


class _Symbol(ctypes.Structure):
    """``Dl_info``."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def name_of(address: int) -> str:
    """Returns the exported name before the address."""
    symbol = _Symbol()
    ctypes.CDLL(None).dladdr(ctypes.c_void_p(address), ctypes.byref(symbol))
    return (symbol.name or b"?").decode()


class Mapping:
    def __init__(self, line: str) -> None:
        limits, self.rights, *rest = line.split()
        self.start, self.end = (int(limit, 16) for limit in limits.split("-"))
        self.name = Path(rest[3]).name if len(rest) > 3 else ""


def data_of(maps: list[Mapping], library: str) -> bytes:
    """Returns what is writable of it, with what follows without a name."""
    data, inside = b"", False
    for mapping in maps:
        inside = mapping.name == library or (inside and not mapping.name)
        if inside and mapping.rights.startswith("rw"):
            data += ctypes.string_at(mapping.start, mapping.end - mapping.start)
    return data


def addresses_in(data: bytes) -> list[int]:
    return [number for (number,) in struct.iter_unpack("=Q", data[: len(data) // 8 * 8]) if number]


if __name__ == "__main__":
    main()
