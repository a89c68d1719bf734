"""Makes everything that is published of a version: ``python -m release [--into dist]``.

One folder with the image, the chart, the manifests, the client, the bill of materials, the notes and the
checksums. Two runs on one commit and one base image make the same bytes.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gpushare_core.process.version import VERSION
from release.archive import tree, write_archive
from release.notes import UNRELEASED, release_notes

ROOT = Path(__file__).resolve().parents[1]
CHECKSUMS = "SHA256SUMS"
NAME = f"gpushare-{VERSION}"
FIRST_YEAR = 315_532_800
"""1980-01-01, for use outside of a checkout, where there is no commit: wheels cannot hold older times."""

Report = Callable[[str], None]
"""Prints a line for people."""


class ReleaseError(Exception):
    """No release was made; the text says why, for people."""


@dataclass(frozen=True)
class Release:
    """A release that is being made in ``folder``. ``epoch``: the time of every file in it."""

    folder: Path
    epoch: int
    report: Report

    def make(self) -> None:
        self.write_notes()
        self.write_chart()
        self.write_manifests()
        self.build_client()
        self.build_image()
        self.write_checksums()

    def write_notes(self) -> None:
        self.report("notes, from CHANGELOG.md")
        changelog = (ROOT / "CHANGELOG.md").read_text()
        notes = release_notes(changelog, VERSION)
        if notes is None:
            self.report(f"  no section [{VERSION}] yet: these are the notes of [{UNRELEASED}]")
            notes = release_notes(changelog, UNRELEASED) or ""
        (self.folder / "RELEASE-NOTES.md").write_text(notes)

    def write_chart(self) -> None:
        """As `helm package` does it; but that writes the time of day into the archive."""
        self.report("chart")
        chart = ROOT / "charts" / "gpushare"
        files = tree(chart, ".")
        write_archive(self.folder / f"{NAME}.tgz", files, prefix="gpushare", epoch=self.epoch)

    def write_manifests(self) -> None:
        self.report("manifests, definitions and samples")
        files = tree(ROOT, "manifests", "crds", "config", "LICENSE")
        write_archive(self.folder / f"{NAME}-manifests.tar.gz", files, prefix=NAME, epoch=self.epoch)

    def build_client(self) -> None:
        self.report("client: the wheel that has kubectl-gpushare, and all programs")
        command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory"]
        self._run([*command, str(self.folder)])

    def build_image(self) -> None:
        self.report("image, with its bill of materials: minutes")
        archive = self.folder / f"{NAME}-image.tar"
        self._run([str(ROOT / "image" / "build.sh")], {"ARCHIVE": str(archive), "SBOM": str(self.folder)})
        (self.folder / "sbom.json").rename(self.folder / f"{NAME}.cdx.json")

    def write_checksums(self) -> None:
        self.report(f"checksums: {CHECKSUMS}")
        files = sorted(self.folder.iterdir())
        lines = [f"{checksum(path)}  {path.name}\n" for path in files]
        (self.folder / CHECKSUMS).write_text("".join(lines))

    def _run(self, command: list[str], variables: Mapping[str, str] | None = None) -> None:
        environment = {**os.environ, **(variables or {}), "SOURCE_DATE_EPOCH": str(self.epoch)}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ReleaseError(f"{command[0]} failed:\n{(done.stdout + done.stderr).strip()[-4000:]}")


def checksum(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def git(*arguments: str) -> str:
    """Returns the output of git; empty outside of a checkout."""
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def make_release(into: Path, *, report: Report) -> Path:
    """Returns the folder of the release, which is complete or does not exist; an earlier one is replaced.

    Raises:
        ReleaseError: a part of it cannot be made.
    """
    if git("status", "--porcelain"):
        report("the checkout has changes that no commit has: nobody else can make this release again")
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or git("log", "-1", "--format=%ct") or FIRST_YEAR)
    into.mkdir(parents=True, exist_ok=True)
    target = into / NAME
    with tempfile.TemporaryDirectory(dir=into) as scratch:
        folder = Path(scratch, NAME)
        folder.mkdir()
        Release(folder.resolve(), epoch, report).make()
        shutil.rmtree(target, ignore_errors=True)
        folder.rename(target)
    return target


def main() -> int:
    parser = argparse.ArgumentParser(prog="release", description=__doc__)
    parser.add_argument("--into", type=Path, default=Path("dist"), help="(%(default)s)")
    options = parser.parse_args()
    try:
        folder = make_release(options.into, report=lambda line: print(f"  {line}", flush=True))
    except ReleaseError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{folder}:")
    for path in sorted(folder.iterdir()):
        print(f"  {path.stat().st_size / 1e6:8.2f} MB  {path.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
