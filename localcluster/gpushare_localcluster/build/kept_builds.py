"""Which builds stay in the cache: those in use, and of each kind the last ones."""

import contextlib
import os
import re
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

KEPT_BUILDS = 3
"""Of each minor of Kubernetes, or of each other program."""
KEPT_SECONDS = 24 * 3600.0
"""After its last use: a running cluster starts programs from its build."""
UNUSED_SECONDS = 14 * KEPT_SECONDS
"""After these even the last build goes, once something else is built."""
_NAME = re.compile(r"([0-9]+\.[0-9]+-)?[0-9a-f]{16}")


def note_use(build: Path) -> None:
    """Comes before the question whether a build is there: another process may delete what nobody uses."""
    with contextlib.suppress(FileNotFoundError):
        os.utime(build)


def delete_outdated(folder: Path) -> None:
    """Deletes the builds in ``folder`` that nobody uses any more, interrupted ones among them. The caller
    holds the lock, so that none of them is under way."""
    builds = [path for path in folder.iterdir() if _NAME.fullmatch(path.name)]
    for old in outdated(builds, now=time.time()):
        shutil.rmtree(old)


def outdated(builds: Sequence[Path], *, now: float) -> Sequence[Path]:
    """Returns the builds to delete. ``now``: seconds since the epoch.

    A build stays for KEPT_SECONDS after its last use. Those of a minor used last stay for UNUSED_SECONDS:
    several minors are in use side by side.
    """
    used = {build: build.stat().st_mtime for build in builds}
    by_minor: dict[str, list[Path]] = {}
    for build in sorted(builds, key=used.__getitem__, reverse=True):
        by_minor.setdefault(build.name.rpartition("-")[0], []).append(build)
    rarely = {build for group in by_minor.values() for build in group[KEPT_BUILDS:]}
    kept = {build: KEPT_SECONDS if build in rarely else UNUSED_SECONDS for build in builds}
    return [build for build in builds if now - used[build] > kept[build]]
