"""Users of a real card under the hook, and tables of what was seen."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.fakes.cuda_driver import MIB
from tests.fakes.cuda_user import USERS, User, make_programs
from tests.fakes.hook_library import compiled_hook
from tests.fakes.nvml_figures import RealCard

BUILT = "GPUSHARE_HOOK_FOLDER"
"""Variable that names a folder with what a machine without compiler cannot make: ``libgpushare-cuda.so``,
made with ``FLAGS``, and the programs of the tests. ``python -m tests.fakes.real_card FOLDER`` makes it."""
FOLDER = Path("/tmp/gpushare-real-card")  # noqa: S108
"""Of the limits and the ledger: the library that was brought along has this path in it."""
FLAGS = (f'-DHOOK_LIMITS="{FOLDER}/limits"', f'-DHOOK_LEDGER_FOLDER="{FOLDER}"')
CONTEXT_MEMORY = 600 * MIB


@dataclass(slots=True)
class Table:
    """Printed as it grows: a run that is cut off has told what it saw."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        print(f"\n== {self.title}\n{' | '.join(self.columns)}", flush=True)

    def add(self, *cells: object) -> None:
        row = tuple(map(str, cells))
        self.rows.append(row)
        print(" | ".join(row), flush=True)


def mib(size: float) -> str:
    return f"{size / MIB:+.0f}"


@dataclass(slots=True)
class Share:
    """A container's worth: limits of the first card, and users that are held to them."""

    card: RealCard
    hook: Path
    size: int
    identity: str = "0" * 32
    _users: list[User] = field(default_factory=list)

    def write(self) -> None:
        FOLDER.mkdir(exist_ok=True)
        text = f"container {self.identity}\ncontext {CONTEXT_MEMORY}\n{self.card.uuid} {self.size}\n"
        (FOLDER / "limits").write_text(text)

    def environment(self, *, hooked: bool = True) -> Mapping[str, str]:
        kept = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        return kept | ({"LD_PRELOAD": str(self.hook)} if hooked else {})

    def start(
        self, *, hooked: bool = True, arguments: Sequence[str] = (), program: Sequence[str] = ()
    ) -> User:
        self.write()
        command = [*(program or (sys.executable, str(USERS / "user.py"))), *arguments]
        user = User.start(command, self.environment(hooked=hooked))
        self._users.append(user)
        return user

    def run(self, script: str, *, hooked: bool = True, **variables: str) -> subprocess.CompletedProcess[str]:
        """Runs a script of Python to its end."""
        self.write()
        environment = {**self.environment(hooked=hooked), **variables}
        command = [sys.executable, "-c", script]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)

    def used(self, user: User) -> int:
        """Bytes that NVML sees of a process."""
        return self.card.processes().get(user.pid, 0)

    def counted(self, user: User) -> int:
        """Bytes that the hook counts, of all processes of the share."""
        free, total = user.info()
        return total - free

    def end(self) -> None:
        for user in self._users:
            user.process.kill()
            user.end()
        self._users.clear()
        for path in FOLDER.glob(".gpushare-*"):
            path.unlink()


def main() -> None:
    """Makes the folder that a machine without compiler is brought."""
    folder = Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    (folder / "libgpushare-cuda.so").write_bytes(compiled_hook(*FLAGS))
    make_programs(folder)


if __name__ == "__main__":
    main()
