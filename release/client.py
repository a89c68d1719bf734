"""Makes the client for the system it runs on: ``python -m release.client [--into dist] [--url URL]``.

A wheel; an archive with a folder that needs no Python; and a manifest with which krew installs that archive.
Two runs on one machine and one commit make the same bytes.
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import distributions, packages_distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from gpushare_core.process.version import VERSION
from release.archive import tree, write_archive
from release.errors import ReleaseError
from release.krew import KrewArchive, krew_manifest
from release.source import ROOT, checksum, commit_time

DISTRIBUTION = "kubectl-gpushare"
PROGRAM = "kubectl-gpushare"
COMPLETION = "kubectl_complete-gpushare"
KREW_MANIFEST = "gpushare.yaml"
"""Named as the plugin, as krew wants it."""
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""As Go and krew call them."""
EXAMPLE_URL = "https://example.com/gpushare"

START = "import sys\nfrom gpushare_cli.main import main\nsys.exit(main())\n"
# Links are no part of it: krew unpacks files and folders alone.
ASK_BESIDE = f"""\
#!/bin/sh
exec "$(dirname "$(readlink -f "$0")")/{PROGRAM}" __complete "$@"
"""


@dataclass(frozen=True, slots=True)
class ClientBuild:
    """Builds into ``folder``. ``epoch``: the time of every file, in seconds since 1970."""

    folder: Path
    epoch: int
    url: str = EXAMPLE_URL
    """Of the folder where the archive is published."""

    def make(self) -> None:
        """Raises ``ReleaseError``."""
        self.build_wheel()
        self.build_archive()
        self.write_krew_manifest()

    @property
    def archive(self) -> Path:
        return self.folder / f"{PROGRAM}_{VERSION}_{system()}_{architecture()}.tar.gz"

    def build_wheel(self) -> None:
        command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory"]
        run([*command, str(self.folder)], folder=ROOT / "cli", epoch=self.epoch)

    def build_archive(self) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            built = freeze(Path(scratch), epoch=self.epoch)
            asking = built / COMPLETION
            asking.write_text(ASK_BESIDE)
            asking.chmod(0o755)
            files = {**tree(built, "."), "LICENSE": ROOT / "LICENSE", **licences()}
            write_archive(self.archive, files, prefix=PROGRAM, epoch=self.epoch)

    def write_krew_manifest(self) -> None:
        published = KrewArchive(
            uri=f"{self.url.rstrip('/')}/{self.archive.name}",
            sha256=checksum(self.archive),
            system=system(),
            architecture=architecture(),
            program=f"{PROGRAM}/{PROGRAM}",
        )
        (self.folder / KREW_MANIFEST).write_text(krew_manifest(VERSION, published))


def freeze(scratch: Path, *, epoch: int) -> Path:
    """Returns a folder with the program, its interpreter, and the modules that it imports."""
    start = scratch / "start.py"
    start.write_text(START)
    options = [
        *("--onedir", "--console", "--noconfirm", "--log-level=ERROR", "--name", PROGRAM),
        *(f"--{part}path={scratch / part}" for part in ("dist", "work", "spec")),
        *(f"--paths={ROOT / part}" for part in ("cli", "core")),
        "--collect-data=gpushare_cli",  # the page of `web`
        *(f"--exclude-module={name}" for name in left_out()),
    ]
    run([sys.executable, "-m", "PyInstaller", *options, str(start)], folder=scratch, epoch=epoch)
    return scratch / "dist" / PROGRAM


def left_out() -> Iterable[str]:
    """Returns the modules of this environment that the client does not bring, as if it were alone here."""
    own = client_distributions()
    others = [
        module
        for module, names in packages_distributions().items()
        if own.isdisjoint(map(canonicalize_name, names))
    ]
    return sorted({*others, "gpushare_plugin", "tkinter"})


def client_distributions() -> frozenset[str]:
    """Returns the client and all that it depends on."""
    needs = {canonicalize_name(found.metadata["Name"]): found.requires or [] for found in distributions()}
    found: set[str] = set()
    open_names = [canonicalize_name(DISTRIBUTION)]
    while open_names:
        name = open_names.pop()
        if name in found or name not in needs:
            continue
        found.add(name)
        requirements = map(Requirement, needs[name])
        open_names += [
            canonicalize_name(requirement.name)
            for requirement in requirements
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        ]
    return frozenset(found)


def licences() -> Mapping[str, Path]:
    """Returns the licences of what the archive brings, by their paths in it."""
    own = client_distributions()
    found = {"licenses/python/LICENSE.txt": Path(os.__file__).with_name("LICENSE.txt")}
    for distribution in distributions():
        name = canonicalize_name(distribution.metadata["Name"])
        for file in (distribution.files or []) if name in own else []:
            if file.name.upper().startswith(("LICENSE", "LICENCE", "COPYING", "NOTICE")):
                found[f"licenses/{name}/{file.name}"] = Path(str(file.locate()))
    return {name: path for name, path in found.items() if path.is_file()}


def system() -> str:
    return platform.system().lower()


def architecture() -> str:
    machine = platform.machine()
    return ARCHITECTURES.get(machine, machine)


def run(command: list[str], *, folder: Path, epoch: int) -> None:
    """Raises ``ReleaseError`` where the command fails."""
    # The order of sets is in PyInstaller's archives.
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch), "PYTHONHASHSEED": "0"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip()[-4000:]
        raise ReleaseError(f"{' '.join(command[:3])} failed:\n{said}")


def print_files(folder: Path) -> None:
    print(f"{folder}:")
    for path in sorted(folder.iterdir()):
        print(f"  {path.stat().st_size / 1e6:8.2f} MB  {path.name}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="release.client", description=__doc__)
    parser.add_argument("--into", type=Path, default=Path("dist"), help="(%(default)s)")
    parser.add_argument("--url", default="", help="of the folder where the archive is published")
    options = parser.parse_args()
    folder = options.into.resolve() / f"{DISTRIBUTION}-{VERSION}"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        ClientBuild(folder, commit_time(), options.url or EXAMPLE_URL).make()
    except ReleaseError as error:
        print(error, file=sys.stderr)
        return 1
    print_files(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
