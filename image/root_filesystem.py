"""Lays out the image: the interpreter and what it loads, the dependencies, and the product; nothing else.

Runs in the image's build, with the interpreter of the image. What attackers use and the programs do not is
left out: a shell, package managers, compilers, and modules of the standard library for developers.
"""

import compileall
import py_compile
import shutil
import subprocess
import sysconfig
from collections.abc import Iterable, Iterator
from importlib.metadata import distributions
from pathlib import Path

BUILT = Path("/rootfs")
HOME = Path("/opt/gpushare")
PRODUCT = "gpushare"
CLIENT = "kubectl-gpushare"
"""A distribution of its own, of the same version."""
PROGRAMS = (f"{PRODUCT}-", CLIENT, "kubectl_complete-gpushare", "python")
"""How the names begin of what stays in the folder of programs."""
USER = 65532
HOOK = Path("/usr/share/gpushare/hook")
"""The library for containers of users, as hook/build.sh has put it there: a folder for each architecture."""

# Of the standard library, by the name before the first dot.
DEVELOPERS = "distutils ensurepip idlelib lib2to3 pydoc_data test turtledemo venv __pycache__"
OF_THE_BASE = "site-packages dist-packages"
TESTS = (
    "_ctypes_test _testbuffer _testcapi _testclinic _testimportmultiple _testinternalcapi _testmultiphase "
    "_testsinglephase _xxsubinterpreters _xxtestfuzz xxlimited xxlimited_35"
)
TERMINALS = "tkinter _tkinter curses _curses _curses_panel readline"
# They would bring libraries along: databases, NIS and with it Kerberos, sound.
WITH_LIBRARIES = "sqlite3 _sqlite3 dbm _dbm _gdbm nis ossaudiodev"
LEFT_OUT = frozenset(" ".join((DEVELOPERS, OF_THE_BASE, TESTS, TERMINALS, WITH_LIBRARIES)).split())

KEPT_OF_THE_BASE = (
    # By these a scanner knows the system, and NVIDIA's container runtime where libraries belong.
    "/etc/debian_version",
    "/etc/os-release",
    "/usr/lib/os-release",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/nsswitch.conf",
)

# Opened by name at run time, so that no list of dependencies has it: the C library's end of a thread.
LOADED_BY_NAME = ("libgcc_s.so.1",)


def main() -> None:
    base, dependencies, product = (BUILT / name for name in ("base", "dependencies", "product"))
    copy_all(interpreter(), base)
    copy_all([HOME], dependencies)
    copy_all(libraries([base, dependencies]), base)
    copy_all((Path(path) for path in KEPT_OF_THE_BASE), base)
    index_libraries(base)
    write_users(base)
    (base / "tmp").mkdir(mode=0o1777)
    for root in (base, dependencies):
        compile_modules(root)
    move_product(dependencies, product)
    copy_all([HOOK], product)


def interpreter() -> Iterator[Path]:
    """Yields the interpreter as the virtual environment names it, and its standard library."""
    link = HOME / "bin" / "python3"
    while link.is_symlink():
        link = link.parent / link.readlink()
        yield link
    yield Path(sysconfig.get_path("stdlib"))


def copy_all(sources: Iterable[Path], root: Path) -> None:
    """Copies files and folders below ``root``, each to its own path, with the links on that path."""
    for source in sources:
        if source.exists():
            copy(source, root)


def copy(source: Path, root: Path) -> None:
    target = root / real_parent(source, root).relative_to("/") / source.name
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_symlink():
        if not target.is_symlink():
            target.symlink_to(source.readlink())
        copy(source.parent / source.readlink(), root)
    elif source.is_dir():
        shutil.copytree(source, target, symlinks=True, ignore=left_out, dirs_exist_ok=True)
    else:
        shutil.copy2(source, target)


def real_parent(source: Path, root: Path) -> Path:
    """Returns the folder of ``source`` without links. Where a folder such as /lib is a link, makes the link
    in ``root``."""
    top = Path("/", source.parts[1])
    if top.is_symlink() and not (root / source.parts[1]).is_symlink():
        root.mkdir(parents=True, exist_ok=True)
        (root / source.parts[1]).symlink_to(top.readlink())
    return source.parent.resolve()


def left_out(folder: str, names: list[str]) -> set[str]:
    """Returns the names in a folder that ``shutil.copytree`` leaves out."""
    place, library = Path(folder).resolve(), Path(sysconfig.get_path("stdlib")).resolve()
    if place in (library, library / "lib-dynload"):
        return {name for name in names if name.partition(".")[0] in LEFT_OUT or name.startswith("config-")}
    if place == HOME / "bin":
        return {name for name in names if not name.startswith(PROGRAMS)}
    # Compiled anew, see below.
    return set(names) & {"__pycache__"}


def libraries(roots: Iterable[Path]) -> Iterator[Path]:
    """Yields the shared libraries of the base image to which programs and modules below ``roots`` are
    linked."""
    loaded = [path for root in roots for path in root.rglob("*") if is_linked(path)]
    listing = subprocess.run(["ldd", *loaded], capture_output=True, text=True, check=True).stdout
    found = {word for line in listing.splitlines() for word in line.split() if word.startswith("/")}
    yield from (Path(word) for word in sorted(found) if not word.endswith(":") and not is_built(word))
    yield from (
        path
        for folder in ("/lib", "/usr/lib")
        for name in LOADED_BY_NAME
        for path in Path(folder).glob(f"*/{name}")
    )


def index_libraries(root: Path) -> None:
    """Writes the list with which the loader finds libraries outside of its usual folders."""
    subprocess.run(["/sbin/ldconfig", "-r", root], check=True)
    shutil.rmtree(root / "var/cache", ignore_errors=True)


def is_linked(path: Path) -> bool:
    """Returns whether a file is a program or a shared library (ELF)."""
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def is_built(path: str) -> bool:
    """Returns whether a dependency brings the library itself, beside the file that is linked to it."""
    return Path(path).is_relative_to(BUILT)


def write_users(root: Path) -> None:
    (root / "etc").mkdir(exist_ok=True)
    (root / "etc/passwd").write_text(
        f"root:x:0:0:root:/:/nonexistent\n{PRODUCT}:x:{USER}:{USER}::/:/nonexistent\n"
    )
    (root / "etc/group").write_text(f"root:x:0:\n{PRODUCT}:x:{USER}:\n")


def compile_modules(root: Path) -> None:
    """Compiles all modules, because the image is read-only. The compiled files are valid by content, not by
    time, and are never checked again."""
    compileall.compile_dir(
        str(root),
        stripdir=str(root),
        prependdir="/",
        quiet=2,
        workers=1,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )


def move_product(dependencies: Path, product: Path) -> None:
    """Moves the product into a layer of its own, so that an upgrade fetches only that layer."""
    library = next(dependencies.rglob("site-packages"))
    files = [
        file
        for distribution in distributions(path=[str(library)])
        if distribution.metadata["Name"] in (PRODUCT, CLIENT)
        for file in distribution.files or []
    ]
    for name in sorted({file.parts[0] for file in files if file.parts[0] != ".."}):
        move(library / name, dependencies, product)
    for script in sorted({file.name for file in files if file.parts[0] == ".."}):
        move(dependencies / HOME.relative_to("/") / "bin" / script, dependencies, product)


def move(source: Path, old: Path, new: Path) -> None:
    target = new / source.relative_to(old)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(source, target)


if __name__ == "__main__":
    main()
