"""A driver whose library is compiled from ``nvml/stub.c``, and does what a test tells it."""

import asyncio
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent / "nvml" / "stub.c"
GIB = 2**30
FIRST_WITH_LIMITS = 615


@dataclass(slots=True)
class StubDriver:
    """A library in ``folder`` that reads its answers from a file beside it; each change writes that file
    anew."""

    folder: Path
    cards: list[str] = field(default_factory=list)
    linked: list[tuple[int, int]] = field(default_factory=list)
    faults: dict[tuple[str, int], int] = field(default_factory=dict)
    hanging: set[str] = field(default_factory=set)
    remapping: dict[int, int] = field(default_factory=dict)
    """Card -> rows that could not be remapped."""
    recovery: dict[int, int] = field(default_factory=dict)
    """Card -> ``nvmlDeviceGpuRecoveryAction_t``."""
    xids: list[tuple[int, int]] = field(default_factory=list)
    """Card and code of each event."""
    used: dict[int, int] = field(default_factory=dict)
    """Index -> bytes that are in use."""
    processes: list[tuple[int, str, int, int]] = field(default_factory=list)
    """Index, list (compute or graphics), PID, bytes; -1 where the driver does not report them."""
    version: str = "615.71.09"
    """A driver before r615 has no limits on the memory of cgroups."""
    cgroups: dict[tuple[int, Path], int] = field(default_factory=dict)
    """Index and cgroup -> bytes that its processes use, where it has a limit."""

    @property
    def library(self) -> Path:
        return self.folder / "libnvidia-ml.so.1"

    def install(self) -> None:
        """Put the library there, as a new file where there was one."""
        self.write()
        unfinished = self.folder / "unfinished.so"
        has_limits = int(self.version.partition(".")[0]) >= FIRST_WITH_LIMITS
        unfinished.write_bytes(_compiled(() if has_limits else ("-DWITHOUT_LIMITS",)))
        unfinished.rename(self.library)

    def remove(self) -> None:
        self.library.unlink()

    def add_card(self, uuid: str, *, gib: int = 16, mig: bool = False, numa: int = 0) -> None:
        self.cards.append(f"{uuid} {gib * GIB} 9 0 {int(mig)} {numa}")
        self.write()

    def fail(self, symbol: str, code: int, *, card: int = -1) -> None:
        """From now on ``symbol`` answers with ``code``, for every card when none is given."""
        self.faults[symbol, card] = code
        self.write()

    def xid(self, card: int, code: int) -> None:
        """It happens now."""
        self.xids.append((card, code))
        self.write()

    def ask_for(self, action: int, *, card: int) -> None:
        """From now on, until it is 0, it is due."""
        self.recovery[card] = action
        self.write()

    def recover(self) -> None:
        self.faults.clear()
        self.hanging.clear()
        self.write()

    def hang(self, symbol: str) -> None:
        self.hanging.add(symbol)
        self.write()

    def run(self, pid: int, size: int, *, card: int = 0, kind: str = "compute") -> None:
        """A process begins to use a card."""
        self.processes.append((card, kind, pid, size))
        self.used[card] = self.used.get(card, 0) + max(0, size)
        self.write()

    def use_in(self, cgroup: Path, size: int, *, card: int = 0) -> None:
        """The processes of a cgroup use ``size`` bytes of a card."""
        self.cgroups[card, cgroup] = size
        self.write()

    async def called(self, symbol: str, times: int = 1) -> None:
        """Waits until the plugin's threads have called ``symbol`` so many ``times``."""
        async with asyncio.timeout(30):
            while self.calls(symbol) < times:  # noqa: ASYNC110 - a file tells
                await asyncio.sleep(0.01)

    def calls(self, symbol: str) -> int:
        """Returns how often it was called."""
        log = self.folder / "log"
        return log.read_text().split().count(symbol) if log.exists() else 0

    def write(self) -> None:
        lines = [f"card {index} {card}" for index, card in enumerate(self.cards)]
        lines += [f"linked {one} {other}" for one, other in self.linked]
        lines += [f"fail {symbol} {card} {code}" for (symbol, card), code in self.faults.items()]
        lines += [f"remapping {card} {rows}" for card, rows in self.remapping.items()]
        lines += [f"recovery {card} {action}" for card, action in self.recovery.items()]
        lines += [f"xid {card} {code}" for card, code in self.xids]
        lines += [f"hang {symbol}" for symbol in self.hanging]
        lines += [f"used {index} {size}" for index, size in self.used.items()]
        lines += [f"process {' '.join(map(str, process))}" for process in self.processes]
        lines += [f"cgroup {index} {size} {path}" for (index, path), size in self.cgroups.items()]
        lines.append(f"version {self.version}")
        lines.append(f"log {self.folder / 'log'}")
        unfinished = self.folder / "control.unfinished"
        unfinished.write_text("\n".join(lines) + "\n")
        unfinished.rename(self.folder / "control")


@cache
def _compiled(options: tuple[str, ...]) -> bytes:
    """Returns the library, compiled once: a busy machine takes seconds. One without compiler fails here."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.fail("the tests of NVML need a C compiler as `cc`: install gcc or clang")
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder) / "built.so"
        flags = ["-shared", "-fPIC", "-Wall", "-Werror", *options]
        command = [compiler, *flags, "-o", str(built), str(SOURCE), "-ldl"]
        subprocess.run(command, check=True)
        return built.read_bytes()
