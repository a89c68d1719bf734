"""What was released before: its files, from the history of this repository."""

import subprocess
import tarfile
import tomllib
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RELEASES = Path(__file__).with_name("releases.toml")
PACKAGES = ("core", "operator", "plugin", "extender", "hostctl")


@dataclass(frozen=True, slots=True)
class Release:
    """A commit of this repository."""

    name: str
    commit: str

    def read(self, path: str) -> str:
        """Returns the text of a file as it was released."""
        return self._git("show", f"{self.commit}:{path}").decode()

    def extract(self, folder: Path) -> Path:
        """Puts the released files into ``folder``, and returns it."""
        archive = self._git("archive", "--format=tar", self.commit)
        with tarfile.open(fileobj=BytesIO(archive)) as files:
            files.extraction_filter = getattr(tarfile, "data_filter", None)  # Python before 3.11.4 has none
            files.extractall(folder)  # noqa: S202 - from our own repository
        return folder

    def _git(self, *arguments: str) -> bytes:
        self._fetch_if_missing()
        return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True).stdout

    def _fetch_if_missing(self) -> None:
        """A shallow clone can be completed, where there is a remote that is not shallow itself."""
        if not self._problem():
            return
        subprocess.run(
            ["git", "fetch", "--quiet", "--depth=1", "origin", self.commit],
            cwd=ROOT,
            check=False,
            capture_output=True,
        )
        if problem := self._problem():
            raise AssertionError(
                f"the last release ({self.commit}, see {RELEASES.name}) is not in this clone"
                " and cannot be fetched from its remote: upgrades cannot be tested. Get the whole history:"
                f" git fetch --unshallow. git says: {problem}"
            )

    def _problem(self) -> str:
        """Returns why git does not have the commit; empty when it has it."""
        found = subprocess.run(
            ["git", "cat-file", "-e", f"{self.commit}^{{commit}}"], cwd=ROOT, check=False, capture_output=True
        )
        return found.stderr.decode().strip() or f"exit code {found.returncode}" if found.returncode else ""


def last_release() -> Release:
    """Returns the release that an upgrade to this version starts from."""
    first = tomllib.loads(RELEASES.read_text())["release"][0]
    return Release(first["name"], first["commit"])
