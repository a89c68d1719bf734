"""The driver and its users for musl, made by the machine's compiler with Debian's musl."""

import platform
import shutil
from collections.abc import Sequence
from pathlib import Path

from tests.fakes.cuda_driver import compiled, driver_sources
from tests.fakes.cuda_user import USERS

from gpushare_localcluster.build.packages import ensure_packages

HEADERS_OF_LINUX = (Path("/usr/include"), Path(f"/usr/include/{platform.machine()}-linux-gnu"))


def make_musl_programs(folder: Path) -> None:
    """Puts ``libcuda.so.1`` and ``user`` there.

    Raises LocalClusterError where Debian's package cannot be fetched.
    """
    package = ensure_packages(["musl-dev"], report=print)
    triple = f"{platform.machine()}-linux-musl"
    library = package / "lib" / triple / "libc.so"
    objects = package / "usr/lib" / triple
    headers: list[str | Path] = ["-nostdinc", "-isystem", package / "usr/include" / triple]
    for path in HEADERS_OF_LINUX:
        headers += ["-idirafter", path]
    shared = ["-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-soname,libcuda.so.1"]
    _make(folder / "libcuda.so.1", driver_sources(), [*headers, *shared], [library])
    program = ["-pie", "-fPIE", "-rdynamic", f"-Wl,-dynamic-linker,{library}"]
    sources = [objects / "Scrt1.o", objects / "crti.o", USERS / "user.c", library, objects / "crtn.o"]
    _make(folder / "user", sources, [*headers, *program], [])


def _make(
    into: Path, sources: Sequence[Path], flags: Sequence[str | Path], libraries: Sequence[Path]
) -> None:
    with compiled(sources, ["-nostdlib", *map(str, flags)], libraries=list(map(str, libraries))) as built:
        shutil.copy(built, into)
