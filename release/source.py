"""The checkout that a release is made of, and files made from it."""

import hashlib
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FIRST_YEAR = 315_532_800
"""1980-01-01, for use outside of a checkout, where there is no commit: wheels cannot hold older times."""


def commit_time() -> int:
    """Returns seconds since 1970: of ``SOURCE_DATE_EPOCH``, else of the commit."""
    return int(os.environ.get("SOURCE_DATE_EPOCH") or git("log", "-1", "--format=%ct") or FIRST_YEAR)


def git(*arguments: str) -> str:
    """Returns the output of git; empty outside of a checkout."""
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def checksum(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
