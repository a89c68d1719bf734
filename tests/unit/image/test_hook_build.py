"""The library of hook/ as the image's build compiles it."""

import re
from pathlib import Path

import pytest
from tests.fakes.hook_library import ARCHITECTURES, build_hook, hook_library

ELF_MACHINES = {"x86_64": 62, "aarch64": 183}

pytestmark = pytest.mark.parametrize("architecture", ARCHITECTURES)


def test_two_builds_without_a_cache_are_the_same(tmp_path: Path, architecture: str) -> None:
    for name in ("one", "other"):
        caches = {f"ZIG_{kind}_CACHE_DIR": str(tmp_path / f"{name}-{kind}") for kind in ("LOCAL", "GLOBAL")}
        build_hook(tmp_path / name, architecture, **caches)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_it_is_for_its_architecture_and_small(architecture: str) -> None:
    content = hook_library(architecture=architecture).read_bytes()
    assert content[:4] == b"\x7fELF", "not compiled"
    assert int.from_bytes(content[18:20], "little") == ELF_MACHINES[architecture]
    assert len(content) < 100_000


def test_nothing_in_it_tells_where_it_was_built(architecture: str) -> None:
    content = hook_library(architecture=architecture).read_bytes()
    assert not re.search(rb"/(root|home|source|tmp|usr/src)/", content)
