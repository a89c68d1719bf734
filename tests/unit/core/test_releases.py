"""A release that is not in the clone is said, with what to do; nothing is skipped."""

import subprocess
from pathlib import Path

import pytest
from tests.releases import release
from tests.releases.release import Release, last_release


def test_the_last_release_has_our_programs(tmp_path: Path) -> None:
    folder = last_release().extract(tmp_path)
    assert all((folder / package / f"gpushare_{package}").is_dir() for package in release.PACKAGES)
    assert (folder / "manifests" / "kustomization.yaml").is_file()


def test_a_commit_that_is_nowhere_is_an_error_that_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    monkeypatch.setattr(release, "ROOT", tmp_path)
    with pytest.raises(AssertionError, match=r"0{40}.* not in this clone .*git fetch --unshallow"):
        Release("none", "0" * 40).read("README.md")


def test_a_commit_that_is_missing_is_fetched_from_the_remote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a shallow clone."""
    source, clone = tmp_path / "source", tmp_path / "clone"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", "-C", str(source)]
    subprocess.run(["git", "init", "--quiet", str(source)], check=True)
    (source / "file").write_text("released")
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "--quiet", "-m", "released"], check=True)
    released = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout
    (source / "file").write_text("later")
    subprocess.run([*git, "commit", "--quiet", "-am", "later"], check=True)
    subprocess.run(["git", "clone", "--quiet", "--depth=1", f"file://{source}", str(clone)], check=True)
    monkeypatch.setattr(release, "ROOT", clone)
    assert Release("first", released.strip()).read("file") == "released"
