"""Makes everything that is published of a version: ``python -m release [--into dist]``.

One folder with the images, their bills of materials, the chart, the manifests, the client, the notes and the
checksums. Two runs on one commit and one base image make the same bytes.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gpushare_core.process.version import VERSION
from gpushare_localcluster.build.binary import SCHEDULER
from gpushare_localcluster.build.minors import Minor
from release.archive import tree, write_archive
from release.client import EXAMPLE_URL, ClientBuild, print_files
from release.errors import ReleaseError
from release.notes import UNRELEASED, release_notes
from release.source import ROOT, checksum, commit_time, git

CHECKSUMS = "SHA256SUMS"
NAME = f"gpushare-{VERSION}"

Report = Callable[[str], None]
"""Prints a line for people."""


@dataclass(frozen=True)
class Release:
    """A release that is being made in ``folder``. ``epoch``: the time of every file in it."""

    folder: Path
    epoch: int
    report: Report
    url: str
    """Of the folder where it is published."""

    def make(self) -> None:
        self.write_notes()
        self.write_chart()
        self.write_manifests()
        self.build_client()
        self.build_programs()
        self.build_image()
        for minor in SCHEDULER.minors:
            self.build_scheduler_image(minor)
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
        self.report("client: a wheel, an archive for this machine's system, and a manifest for krew")
        ClientBuild(self.folder, self.epoch, self.url).make()

    def build_programs(self) -> None:
        self.report("all other programs: a wheel, which needs the client's")
        command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory"]
        self._run([*command, str(self.folder)])

    def build_image(self) -> None:
        self.report("image, with its bill of materials: minutes")
        archive = self.folder / f"{NAME}-image.tar"
        self._run([str(ROOT / "image" / "build.sh")], {"ARCHIVE": str(archive), "SBOM": str(self.folder)})
        (self.folder / "sbom.json").rename(self.folder / f"{NAME}.cdx.json")

    def build_scheduler_image(self, minor: Minor) -> None:
        self.report(f"image of our kube-scheduler {minor.name}, with its bill of materials: minutes")
        name = f"{NAME}-scheduler-{minor.name}"
        archive = self.folder / f"{name}-image.tar"
        variables = {"ARCHIVE": str(archive), "SBOM": str(self.folder), "PYTHON": sys.executable}
        self._run([str(ROOT / "image" / "build.sh"), "scheduler", minor.name], variables)
        bill = self.folder / f"sbom-scheduler-{minor.name}.json"
        bill.rename(self.folder / f"{name}.cdx.json")

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


def make_release(into: Path, *, report: Report, url: str = EXAMPLE_URL) -> Path:
    """Returns the folder of the release, which is complete or does not exist; an earlier one is replaced.

    Raises:
        ReleaseError: a part of it cannot be made.
    """
    if git("status", "--porcelain"):
        report("the checkout has changes that no commit has: nobody else can make this release again")
    epoch = commit_time()
    into.mkdir(parents=True, exist_ok=True)
    target = into / NAME
    with tempfile.TemporaryDirectory(dir=into) as scratch:
        folder = Path(scratch, NAME)
        folder.mkdir()
        Release(folder.resolve(), epoch, report, url).make()
        shutil.rmtree(target, ignore_errors=True)
        folder.rename(target)
    return target


def main() -> int:
    parser = argparse.ArgumentParser(prog="release", description=__doc__)
    parser.add_argument("--into", type=Path, default=Path("dist"), help="(%(default)s)")
    parser.add_argument("--url", default="", help="of the folder where it is published")
    options = parser.parse_args()
    url = options.url or EXAMPLE_URL
    try:
        folder = make_release(options.into, report=lambda line: print(f"  {line}", flush=True), url=url)
    except ReleaseError as error:
        print(error, file=sys.stderr)
        return 1
    print_files(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
