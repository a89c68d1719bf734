"""Row ``hook``: what isolation costs a program, on the tests' driver; docs/real-card.md has a real one's."""

import asyncio
import os
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.measuring.figures import Figure, NotMeasuredError, at_most
from bench.rows.programs.workplace import Workplace
from tests.fakes.cuda_driver import GIB, CudaDriver
from tests.fakes.cuda_user import User, make_programs
from tests.fakes.hook_library import compiled_hook

CARD = "GPU-00000000-0000-0000-0000-000000000000"
ALLOCATIONS = 20_000
TURNS = 10
STARTS = 200
MAX_ALLOCATION = 10.0
"""Microseconds more: a real card takes 6 for its smallest allocation."""
MAX_START = 1.0
"""Milliseconds more."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Programs as they are, or those with the hook."""

    name: str
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Card:
    """A driver, programs, and the hook with a share for them: all in one folder."""

    kinds: tuple[Kind, Kind]
    programs: Path

    @classmethod
    def make(cls, folder: Path) -> "Card":
        programs, driver = folder / "programs", CudaDriver(folder / "driver", [(CARD, 16 * GIB)])
        for path in (programs, driver.folder):
            path.mkdir()
        driver.install()
        make_programs(programs)
        paths = (f'-DHOOK_LIMITS="{folder}/limits"', f'-DHOOK_LEDGER_FOLDER="{folder}"')
        library = folder / "hook.so"
        library.write_bytes(compiled_hook(*paths))
        (folder / "limits").write_text(f"container {'0' * 32}\ncontext {GIB}\n{CARD} {8 * GIB}\n")
        plain = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": str(driver.folder)}
        kinds = (Kind("without", plain), Kind("with the hook", plain | {"LD_PRELOAD": str(library)}))
        return cls(kinds, programs)


async def costs(workplace: Workplace) -> list[Figure]:
    """Returns the median costs of both kinds, which take turns."""
    try:
        card = await asyncio.to_thread(Card.make, workplace.subfolder("hook"))
    except (RuntimeError, subprocess.CalledProcessError) as error:
        raise NotMeasuredError(str(error)) from error
    return [*await asyncio.to_thread(_allocations, card), *await asyncio.to_thread(_starts, card)]


def _allocations(card: Card) -> list[Figure]:
    users = {
        kind.name: User.start([str(card.programs / "user"), "v2"], kind.environment) for kind in card.kinds
    }
    for user in users.values():
        user.open()
    costs = {name: partial(_microseconds, user) for name, user in users.items()}
    figures = _in_turns("allocation and its free", "us", costs, turns=TURNS, most=MAX_ALLOCATION)
    for user in users.values():
        user.end()
    return figures


def _microseconds(user: User) -> float:
    code, _, nanoseconds = map(int, user.ask(f"cost {ALLOCATIONS} 4096").split())
    if code:
        raise NotMeasuredError(f"an allocation was answered with {code}")
    return nanoseconds / 1000


def _starts(card: Card) -> list[Figure]:
    costs = {kind.name: partial(_milliseconds, kind) for kind in card.kinds}
    return _in_turns("start of a process", "ms", costs, turns=STARTS, most=MAX_START)


def _milliseconds(kind: Kind) -> float:
    begun = time.perf_counter()
    subprocess.run(["true"], env=dict(kind.environment), check=True)
    return (time.perf_counter() - begun) * 1000


def _in_turns(
    what: str, unit: str, costs: Mapping[str, Callable[[], float]], *, turns: int, most: float
) -> list[Figure]:
    seen: dict[str, list[float]] = {name: [] for name in costs}
    for _ in range(turns):
        for name, cost in costs.items():
            seen[name].append(cost())
    medians = {name: statistics.median(found) for name, found in seen.items()}
    plain, hooked = medians.values()
    figures = [Figure(f"{what}, {name}", median, unit) for name, median in medians.items()]
    return [*figures, Figure(f"{what}: more with the hook", hooked - plain, unit, at_most(most))]
