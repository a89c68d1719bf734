"""CUDA's driver, compiled from ``cuda/``: it keeps in one file who has what of its cards, and tells."""

import fcntl
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

SOURCES = Path(__file__).parent / "cuda"
MIB = 2**20
GIB = 2**30
CONTEXT = 518 * MIB
"""Of a context on an H200 (docs/real-card.md)."""
CARDS = 8
GROUPS = 8
FAULTS = 8
PROCESSES = 256
HIGHEST = struct.Struct(f"={GROUPS * CARDS}Q")
FAULT = struct.Struct("=56sii")
PROCESS = struct.Struct(f"=iI{CARDS}Q")
FIRST_PROCESS = HIGHEST.size + FAULTS * FAULT.size
SIZE = FIRST_PROCESS + PROCESSES * PROCESS.size
PROCESS_LOCKS = 2**40 + 1
LOCK = struct.Struct("hhqqi4x")


@dataclass(slots=True)
class CudaDriver:
    """A library in ``folder``, and beside it the file that has who has what of its cards."""

    folder: Path
    cards: list[tuple[str, int]] = field(default_factory=list)
    """UUID and bytes of each."""
    context: int = CONTEXT
    pool_chunk: int = 32 * MIB
    lenient: bool = False
    """Whether ``cuGetProcAddress`` finds names that the library does not have."""

    @property
    def library(self) -> Path:
        return self.folder / "libcuda.so.1"

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def asked_names(self) -> list[tuple[str, int, int]]:
        """Name, version and flags, as ``cuGetProcAddress`` was asked for them."""
        log = self.folder / "log"
        lines = log.read_text().splitlines() if log.exists() else []
        return [(name.strip('"'), int(version), int(flags)) for name, version, flags in map(str.split, lines)]

    def install(self) -> None:
        """Put the library there; nobody has anything of its cards."""
        self.folder.chmod(0o755)
        self.library.write_bytes(compiled_driver())
        self.library.chmod(0o755)
        self.state.write_bytes(bytes(SIZE))
        self.state.chmod(0o666)
        self.write()

    def write(self) -> None:
        lines = [f"card {uuid} {size}" for uuid, size in self.cards]
        lines += [f"context {self.context}", f"pool {self.pool_chunk}", f"lenient {int(self.lenient)}"]
        if self.lenient:
            lines.append(f"log {self.folder / 'log'}")
        (self.folder / "control").write_text("\n".join(lines) + "\n")

    def fail(self, function: str, code: int, *, times: int = 1) -> None:
        """The next calls of the exported ``function`` answer with ``code``, in all processes together."""
        with self.state.open("r+b") as file:
            for index in range(FAULTS):
                file.seek(HIGHEST.size + index * FAULT.size)
                name, _, left = FAULT.unpack(file.read(FAULT.size))
                if left <= 0 or name.rstrip(b"\0").decode() == function:
                    file.seek(HIGHEST.size + index * FAULT.size)
                    file.write(FAULT.pack(function.encode(), code, times))
                    return
        raise AssertionError("too many faults at once")

    def highest(self, *, card: int = 0, group: int = 0) -> int:
        """Bytes that the processes of a group had of a card at once, ever."""
        return int(HIGHEST.unpack_from(self.state.read_bytes())[group * CARDS + card])

    def used(self, *, card: int = 0, group: int = 0) -> int:
        """Bytes that the processes of a group have of a card now."""
        return sum(used[card] for of, used in self._processes() if of == group)

    def processes(self) -> int:
        """How many processes have something of any card now."""
        return sum(1 for _, used in self._processes() if any(used))

    def _processes(self) -> Iterator[tuple[int, Sequence[int]]]:
        with self.state.open("r+b") as file:
            content = file.read()
            for index in range(PROCESSES):
                _, group, *used = PROCESS.unpack_from(content, FIRST_PROCESS + index * PROCESS.size)
                if any(used) and _is_locked(file.fileno(), PROCESS_LOCKS + index):
                    yield group, used


def _is_locked(file: int, at: int) -> bool:
    asked = LOCK.pack(fcntl.F_WRLCK, 0, at, 1, 0)
    kind = LOCK.unpack(fcntl.fcntl(file, fcntl.F_GETLK, asked))[0]
    return bool(kind != fcntl.F_UNLCK)


@cache
def compiled_driver() -> bytes:
    """Returns the library, compiled once. A machine without compiler fails here."""
    flags = ("-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-soname,libcuda.so.1")
    with compiled(driver_sources(), flags) as built:
        return built.read_bytes()


def driver_sources() -> list[Path]:
    return sorted(SOURCES.glob("*.c"))


@contextmanager
def compiled(
    sources: Sequence[Path], flags: Sequence[str] = (), *, libraries: Sequence[str] = ()
) -> Iterator[Path]:
    """Yields the path of what the machine's compiler makes of ``sources``."""
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder, "built")
        # -O1: above it, functions that do the same become one, and each version has to have its address.
        command = [
            compiler(),
            "-O1",
            "-Wall",
            "-Wextra",
            "-Werror",
            *flags,
            "-o",
            built,
            *sources,
            *libraries,
        ]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr)
        yield built


def compiler() -> str:
    """Returns the machine's."""
    found = shutil.which("cc")
    if found is None:
        raise RuntimeError("the tests of the hook need a C compiler as `cc`: install gcc or clang")
    return found
