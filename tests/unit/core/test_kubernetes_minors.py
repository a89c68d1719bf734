"""For which servers there is a kube-scheduler of ours."""

import re
from pathlib import Path

import pytest

from gpushare_core.kubernetes_minors import (
    ENGINE_MINORS,
    ENGINE_RANGE,
    MINORS,
    KubernetesMinor,
    engine_minor,
)

SCHEDULER = Path(__file__).parents[3] / "scheduler"


@pytest.mark.parametrize(
    ("server", "engine"),
    [
        pytest.param("1.34", "None", id="older than all"),
        pytest.param("1.35", "1.35", id="oldest"),
        pytest.param("1.36", "1.36", id="the same"),
        pytest.param("1.37", "1.37", id="newest"),
        pytest.param("1.38", "1.37", id="one minor older than the server"),
        pytest.param("1.39", "None", id="two minors older"),
    ],
)
def test_our_kube_scheduler_is_of_the_servers_minor_or_of_the_one_before(server: str, engine: str) -> None:
    major, minor = map(int, server.split("."))
    assert str(engine_minor(KubernetesMinor(major, minor))) == engine


def test_engines_are_built_for_the_minors_that_have_module_files() -> None:
    """``go.mod`` is that of the newest one."""
    kubernetes = re.search(r"k8s\.io/kubernetes v1\.(\d+)\.", (SCHEDULER / "go.mod").read_text())
    built = {file.stem for file in (SCHEDULER / "kubernetes").glob("*.mod")}
    assert kubernetes
    assert {str(minor) for minor in ENGINE_MINORS} == built | {f"1.{kubernetes[1]}"}


ALL = ", ".join(map(str, ENGINE_MINORS[:-1])) + f" and {ENGINE_MINORS[-1]}"
NEXT = ENGINE_MINORS[-1]._replace(minor=ENGINE_MINORS[-1].minor + 1)


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        (
            "docs/scheduler-backends.md",
            f"an image of our kube-scheduler for each of the minors {ALL} of Kubernetes",
        ),
        ("docs/scheduler-backends.md", f"on {NEXT} that of {ENGINE_MINORS[-1]}"),
        ("docs/image.md", f"There are {ALL}."),
        ("docs/upgrade.md", f"the API server is of {ENGINE_RANGE}"),
        ("scheduler/README.md", f"It builds for Kubernetes {ENGINE_RANGE}"),
        ("localcluster/README.md", f"(`scheduler/`, of {ENGINE_MINORS[0]} and newer)"),
    ],
)
def test_documents_name_the_minors_that_have_an_engine(file: str, sentence: str) -> None:
    assert sentence in " ".join((SCHEDULER.parent / file).read_text().split())


def test_engines_are_built_for_supported_minors_without_a_gap() -> None:
    assert list(ENGINE_MINORS) == [minor for minor in MINORS if minor >= ENGINE_MINORS[0]]
