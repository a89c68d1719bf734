"""The chart's copies of what is installed."""

import shutil
from pathlib import Path

import pytest
from charts import copy_objects
from charts.copy_objects import FILES, ROOT, differing, expected, report, write

MANIFEST = FILES / "objects" / "rbac-plugin.yaml"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for folder in ("manifests", "crds", "config", "charts"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    return tmp_path


def test_the_copies_in_the_repository_are_current() -> None:
    assert differing(ROOT, expected(ROOT)) == []


def test_everything_that_is_applied_is_copied_but_the_namespace() -> None:
    sources = {path.name for folder in ("manifests", "crds") for path in (ROOT / folder).glob("*.yaml")}
    optional = {path.name for path in copy_objects.OPTIONAL}
    assert {path.name for path in expected(ROOT)} == sources - {
        "kustomization.yaml",
        "namespace.yaml",
    } | optional | {path.name for path in (ROOT / copy_objects.DEDICATED).rglob("*.yaml")} - {
        "kustomization.yaml"
    }


def edit(checkout: Path) -> None:
    (checkout / "manifests" / "rbac-plugin.yaml").write_text("kind: Other")


def take_away(checkout: Path) -> None:
    (checkout / MANIFEST).unlink()


def leave_out(checkout: Path) -> None:
    path = checkout / "manifests" / "kustomization.yaml"
    path.write_text(path.read_text().replace("- rbac-plugin.yaml\n", ""))


@pytest.mark.parametrize("change", [edit, take_away, leave_out])
def test_a_copy_that_differs_is_named_and_made_anew(
    checkout: Path, change: object, capsys: pytest.CaptureFixture[str]
) -> None:
    assert callable(change)
    change(checkout)
    copies = expected(checkout)
    assert differing(checkout, copies) == [MANIFEST]
    assert report([MANIFEST]) == 1
    assert "rbac-plugin.yaml is not what it was copied from: run `make chart`" in capsys.readouterr().err
    write(checkout / MANIFEST, copies.get(MANIFEST))
    assert differing(checkout, copies) == []
