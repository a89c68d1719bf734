"""Builds that nobody uses any more leave the cache; those in use stay."""

import os
from pathlib import Path

import pytest

from gpushare_localcluster.build import kept_builds
from gpushare_localcluster.build.minors import MINORS

HASH = "62c87249b7f9023e"


def use(build: Path, *, at: int) -> None:
    build.mkdir()
    os.utime(build, (at, at))


def test_minors_beside_each_other_delete_none_of_each_other(tmp_path: Path) -> None:
    builds = [tmp_path / f"{minor.name}-{name}" for minor in MINORS for name in "abc"]
    for build in builds:
        use(build, at=1000)
    assert kept_builds.outdated(builds, now=1001 + kept_builds.KEPT_SECONDS) == []


def test_a_minor_that_nobody_uses_any_more_goes(tmp_path: Path) -> None:
    builds = [tmp_path / "1.35-a", tmp_path / "1.36-a"]
    for build, used in zip(builds, (1000, 2000), strict=True):
        use(build, at=used)
    assert kept_builds.outdated(builds, now=1001 + kept_builds.UNUSED_SECONDS) == builds[:1]


def test_only_the_builds_used_last_are_kept(tmp_path: Path) -> None:
    builds = [tmp_path / f"1.36-{name}" for name in "abcde"]
    for age, build in enumerate(builds):
        use(build, at=1000 - age)
    day = kept_builds.KEPT_SECONDS
    assert kept_builds.outdated(builds, now=997 + day) == builds[4:], "no cluster of theirs runs"
    assert kept_builds.outdated(builds, now=1000 + day) == builds[3:]
    assert kept_builds.outdated(builds, now=1001) == [], "clusters of theirs may run"


@pytest.mark.parametrize("name", [HASH, f"1.36-{HASH}"])
def test_what_is_left_of_an_interrupted_build_goes_and_other_caches_stay(tmp_path: Path, name: str) -> None:
    for folder in (name, "debian", "prebuilt", "containerd"):
        use(tmp_path / folder, at=0)
    (tmp_path / name / "unfinished").touch()
    os.utime(tmp_path / name, (0, 0))
    kept_builds.delete_outdated(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"debian", "prebuilt", "containerd"}


def test_what_is_used_before_it_is_looked_for_stays(tmp_path: Path) -> None:
    use(tmp_path / HASH, at=0)
    kept_builds.note_use(tmp_path / HASH)
    kept_builds.delete_outdated(tmp_path)
    assert (tmp_path / HASH).exists()


def test_the_use_of_what_was_never_built_makes_nothing(tmp_path: Path) -> None:
    kept_builds.note_use(tmp_path / HASH)
    assert list(tmp_path.iterdir()) == []
