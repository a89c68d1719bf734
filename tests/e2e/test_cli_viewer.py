"""An account with the rights of ``config/viewer`` reads all that commands ask for, and changes nothing."""

import json
from collections.abc import Iterator

import pytest
from tests.e2e.command_line import gpushare
from tests.e2e.product import ROOT
from tests.e2e.rights import await_right
from tests.e2e.workloads import create, pod

from gpushare_localcluster.cluster import LocalCluster

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("shared_policy")]

VIEWER = "viewer"
WAITING = "larger-than-a-card"


@pytest.fixture
def viewer(cluster: LocalCluster) -> Iterator[None]:
    """A person who is bound to the role, and to nothing else."""
    folder = str(ROOT / "config" / "viewer")
    cluster.kubectl("apply", "-k", folder)
    cluster.kubectl(
        "create", "clusterrolebinding", VIEWER, "--clusterrole=gpushare-viewer", f"--user={VIEWER}"
    )
    await_right(cluster, "list", "gpusharenodes", f"--as={VIEWER}")
    yield
    cluster.kubectl("delete", "clusterrolebinding", VIEWER)
    cluster.kubectl("delete", "-k", folder)


@pytest.mark.usefixtures("viewer")
def test_a_viewer_gets_whole_answers(cluster: LocalCluster, namespace: str) -> None:
    waiting = pod(WAITING, {"main": 17})
    create(cluster, namespace, [waiting])
    manifest = json.dumps({**waiting, "metadata": {**waiting["metadata"], "namespace": namespace}})
    for command in (
        ("status",),
        ("version",),
        ("preflight",),
        ("inspect",),
        ("pods", "-A"),
        ("namespaces",),
        ("top", "--once"),
        ("why", "-n", namespace, WAITING),
        ("simulate", "-f", "-"),
    ):
        done = gpushare(cluster, *command, "--as", VIEWER, "-o", "json", stdin=manifest)
        assert done.returncode in (0, 1), f"{command}: {done.stderr}"
        assert not json.loads(done.stdout).get("unread"), command


@pytest.mark.usefixtures("viewer")
def test_a_viewer_changes_nothing(cluster: LocalCluster) -> None:
    done = gpushare(cluster, "cordon", "gpu-1", "0", "--as", VIEWER)
    assert done.returncode == 2
    assert "forbidden" in done.stderr.lower()
