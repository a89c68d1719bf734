"""Of which sources a run is."""

import subprocess
from dataclasses import dataclass

from matrix.report import ROOT

MADE_HERE = ("docs/versions.json", "docs/versions.md", "README.md", "docs/install.md")
"""Files that a run changes itself, when a minor before is done."""


@dataclass(frozen=True)
class Checkout:
    """The checkout at one moment."""

    commit: str
    is_modified: bool

    @classmethod
    def now(cls) -> "Checkout":
        others = [f":!{path}" for path in MADE_HERE]
        return cls(_git("rev-parse", "HEAD"), bool(_git("status", "--porcelain", "--", ".", *others)))

    def is_unchanged(self, later: "Checkout") -> bool:
        """Whether all that was run from then to ``later`` is the commit."""
        return not self.is_modified and later == self


def _git(*arguments: str) -> str:
    """Returns the output of git; empty outside of a checkout."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""
