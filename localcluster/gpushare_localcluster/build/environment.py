"""Installs locked packages into a virtual environment: ``environment.py PYTHON REQUIREMENTS``.

Runs before anything is installed, so it needs the standard library alone.
"""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from gpushare_localcluster.build.progress import BuildProgress, run_watched, terminal_of

INSTALL = ("-m", "pip", "install", "--disable-pip-version-check", "--progress-bar", "off", "--require-hashes")
MET = ("Collecting ", "Ignoring ", "Requirement already satisfied: ")
"""What pip begins a line with once it comes to a package."""
INSTALLING = "Installing collected packages"


def main(arguments: Sequence[str]) -> int:
    python, requirements = Path(arguments[0]), Path(arguments[1])
    packages = count_packages(requirements.read_text().splitlines())
    progress = BuildProgress(
        report=lambda line: print(line, file=sys.stderr, flush=True),
        total=packages,
        terminal=terminal_of(sys.stderr),
    )
    said: list[str] = []

    def take(line: str) -> None:
        said.append(line)
        progress.done += line.startswith(MET)
        progress.stage = "installing" if line.startswith(INSTALLING) else progress.stage

    command: list[Path | str] = [python, *INSTALL, "-r", requirements]
    status = run_watched(command, progress, take, is_stdout_taken=True)
    if status != 0:
        print("\n".join(said[-20:]), file=sys.stderr)
    return status


def count_packages(lines: Iterable[str]) -> int:
    """Returns how many packages a lock names, whichever of them this machine needs."""
    return sum("==" in line and not line.startswith((" ", "#", "-")) for line in lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
