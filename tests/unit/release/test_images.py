"""The images of a release: that of all programs, and our kube-scheduler of each Kubernetes."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from release.__main__ import NAME, Release

from gpushare_localcluster.build.binary import SCHEDULER


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What is run; in place of image/build.sh, which tests of its own look at."""
    run: list[list[str]] = []

    def build(_release: Release, command: list[str], variables: Mapping[str, str]) -> None:
        _, *image = command
        run.append(image)
        Path(variables["ARCHIVE"]).write_text(json.dumps(image))
        name = "-".join(["sbom", *image])
        Path(variables["SBOM"], f"{name}.json").write_text(json.dumps(image))

    monkeypatch.setattr(Release, "_run", build)
    return run


def test_each_image_has_its_archive_and_its_bill_of_materials(
    commands: list[list[str]], tmp_path: Path
) -> None:
    release = Release(tmp_path, epoch=0, report=lambda _: None, url="")
    release.build_image()
    for minor in SCHEDULER.minors:
        release.build_scheduler_image(minor)
    schedulers = {f"{NAME}-scheduler-{minor.name}": ["scheduler", minor.name] for minor in SCHEDULER.minors}
    assert commands == [[], *schedulers.values()]
    content = {path.name: json.loads(path.read_text()) for path in tmp_path.iterdir()}
    assert content == {
        f"{NAME}-image.tar": [],
        f"{NAME}.cdx.json": [],
        **{f"{name}-image.tar": image for name, image in schedulers.items()},
        **{f"{name}.cdx.json": image for name, image in schedulers.items()},
    }
