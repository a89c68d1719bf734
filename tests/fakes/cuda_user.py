"""A program that uses CUDA's driver, call by call, as a test tells it: the programs are in ``cuda/users``."""

import os
import select
import shutil
import signal
import struct
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import IO, Literal

from tests.fakes.cuda_driver import SOURCES, compiled, compiled_driver, driver_sources

USERS = SOURCES / "users"
DEADLINE = 60.0
"""Seconds until a call has to be answered."""
OUT_OF_MEMORY = 2
ON_DEVICE = 1
ON_HOST = 2
OUT: Literal["&"] = "&"
"""A variable whose value is told."""
NULL: Literal["null"] = "null"
Argument = int | str | bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """Of a call: its code, errno where it changed it, and the variables' values."""

    code: int
    error_number: int
    values: tuple[int, ...]

    @property
    def value(self) -> int:
        assert self.code == 0, self
        return self.values[0]


@dataclass(slots=True)
class User:
    """A running program, or the child that it became."""

    process: "subprocess.Popen[bytes]"
    output: "IO[bytes]"
    error_numbers: set[int] = field(default_factory=set)
    """Those that calls left behind: none is expected."""

    @classmethod
    def start(cls, command: Sequence[str], environment: Mapping[str, str]) -> "User":
        process = subprocess.Popen(
            command,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdout is not None
        return cls(process, process.stdout)

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())
        self.process.stdin.flush()

    def answer(self) -> str:
        ready, _, _ = select.select([self.output], [], [], DEADLINE)
        assert ready, "no answer in time"
        line = self.output.readline().decode().rstrip("\n")
        assert line, f"the program ended: {self.errors()}"
        return line

    def errors(self) -> str:
        self.process.wait(timeout=DEADLINE)
        assert self.process.stderr is not None
        return f"code {self.process.returncode}, {self.process.stderr.read().decode()}"

    def ask(self, line: str) -> str:
        self.tell(line)
        return self.answer()

    def begin(self, symbol: str, *arguments: Argument) -> None:
        """A call whose answer comes later."""
        name, version = versions().get(symbol, (symbol, 0))
        self.tell(" ".join(["call", symbol, name, str(version), *map(_text, arguments)]))

    def finish(self) -> Answer:
        code, number, *values = map(int, self.answer().split())
        if number:
            self.error_numbers.add(number)
        return Answer(code, number, tuple(values))

    def call(self, symbol: str, *arguments: Argument) -> Answer:
        self.begin(symbol, *arguments)
        return self.finish()

    def source_of(self, symbol: str) -> str:
        """Returns the name of the file that the program has the function from."""
        name, version = versions()[symbol]
        return Path(self.ask(f"address {symbol} {name} {version}")).name

    def open(self, *, device: int = 0) -> "User":
        """Uses the primary context of a card from now on."""
        assert self.call("cuInit", 0).code == 0
        return self.use(device=device)

    def use(self, *, device: int = 0) -> "User":
        context = self.call("cuDevicePrimaryCtxRetain", OUT, device).value
        assert self.call("cuCtxSetCurrent", context).code == 0
        return self

    def allocate(self, size: int) -> int:
        """Returns the address; it has to succeed."""
        return self.call("cuMemAlloc_v2", OUT, size).value

    def refused(self, size: int) -> bool:
        """Whether it is told that the card is full."""
        answer = self.call("cuMemAlloc_v2", OUT, size)
        assert answer.code in (0, OUT_OF_MEMORY), answer
        return answer.code == OUT_OF_MEMORY

    def free(self, address: int) -> None:
        assert self.call("cuMemFree_v2", address).code == 0

    def fill(self, *, step: int) -> int:
        """Allocates until it is refused. Returns the bytes that it got."""
        got = 0
        while not self.refused(step):
            got += step
        return got

    def info(self) -> tuple[int, int]:
        """Bytes that are free, and in total, as it is told."""
        free, total = self.call("cuMemGetInfo_v2", OUT, OUT).values
        return free, total

    def fork(self) -> None:
        """It is its own child from now on."""
        assert self.ask("fork") == "0 0"

    def exec(self) -> None:
        self.tell("exec")
        assert self.ask("echo here") == "here"

    @property
    def pid(self) -> int:
        """Of the program, not of what entered the container for it."""
        pid = self.process.pid
        while children := Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            pid = int(children[0])
        return pid

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        self.end()

    def end(self) -> str:
        """Ends its input, and waits for its end. Returns what it wrote besides answers."""
        with suppress(BrokenPipeError, ValueError):
            output, errors = self.process.communicate(timeout=DEADLINE)
            return (output + errors).decode()
        return ""


def _text(argument: Argument) -> str:
    return f"x:{argument.hex()}" if isinstance(argument, bytes) else str(argument)


def created(*, card: int = 0, kind: int = ON_DEVICE, exported: bool = False) -> bytes:
    """``CUmemAllocationProp``: pinned memory of a card, or of the host; ``exported`` by file descriptors."""
    return struct.pack("=iiiiQ8x", 1, int(exported), kind, card, 0)


def pool(*, card: int = 0, limit: int = 0, kind: int = ON_DEVICE) -> bytes:
    """``CUmemPoolProps``."""
    return struct.pack("=iiiiQQ56x", 1, 0, kind, card, 0, limit)


def shape(width: int, height: int = 0, depth: int = 0, *, flags: int = 0) -> bytes:
    """``CUDA_ARRAY3D_DESCRIPTOR``: bytes, one channel."""
    return struct.pack("=QQQiII4x", width, height, depth, 1, 1, flags)


def flat(width: int, height: int = 0) -> bytes:
    """``CUDA_ARRAY_DESCRIPTOR``: bytes, one channel."""
    return struct.pack("=QQiI", width, height, 1, 1)


@cache
def versions() -> dict[str, tuple[str, int]]:
    """Exported function -> the name that ``cuGetProcAddress`` knows, and the version that brought it."""
    return {symbol: (name, version) for name, version, _, symbol in _names()}


def exported(name: str, version: int, flags: int) -> str | None:
    """Returns the function that the driver has for a name, if any: flag 2 is for streams of each thread."""
    found = [
        (of, per_thread, symbol)
        for known, of, per_thread, symbol in _names()
        if known == name and of <= version and per_thread <= bool(flags & 2)
    ]
    return max(found)[2] if found else None


@cache
def _names() -> list[tuple[str, int, int, str]]:
    lines = (SOURCES / "names.inc").read_text().splitlines()
    rows = [line[4:-1].split(", ") for line in lines if line.startswith("ROW")]
    return [(name.strip('"'), int(version), int(thread), symbol) for name, version, thread, symbol in rows]


def make_programs(folder: Path) -> None:
    """Puts the users' programs there: ``user``, ``linked``, ``static``, ``plugin`` and ``user.py``."""
    source = USERS / "user.c"
    with tempfile.TemporaryDirectory() as scratch:
        driver = Path(scratch, "libcuda.so.1")
        driver.write_bytes(compiled_driver())
        wanted = {
            "user": ([source], ["-rdynamic"]),
            "linked": ([source, driver], ["-DLINKED"]),
            "static": ([source, *driver_sources()], ["-DLINKED", "-static"]),
            "plugin": ([source, driver], ["-DLINKED", "-DPLUGIN", "-shared", "-fPIC"]),
        }
        for name, (sources, flags) in wanted.items():
            with compiled(sources, flags, libraries=["-ldl", "-lpthread"]) as built:
                shutil.copy(built, folder / name)
    shutil.copy(USERS / "user.py", folder / "user.py")
