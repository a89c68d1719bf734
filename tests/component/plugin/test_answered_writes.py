"""A status is written in place of the one that is known, or not at all."""

import pytest
from tests.fakes.books import Node, run_now
from tests.fakes.books_cluster import Cluster

from gpushare_core.api.names import CORDON_ANNOTATION
from gpushare_core.api.share_node import GPUShareNode
from gpushare_core.text.json_object import Json
from gpushare_plugin.decide.report.conditions import RegistrationState
from gpushare_plugin.reconcile.status_writer import ATTEMPTS

NAME = "gpu-1"


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster()
    made.add_node(NAME, 16, 16, spec={"mode": "Memory", "memoryUnit": "1Gi"})
    return made


def _write_another_status(node: Node) -> bool:
    node.registration = RegistrationState(registered=False, message="away")
    node.state.changed.clear()
    return run_now(node.reconciler.write_status())


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"spec": {"reservedMemory": "1Gi"}}, id="the spec"),
        pytest.param({"metadata": {"annotations": {CORDON_ANNOTATION: "1"}}}, id="a cordon"),
    ],
)
def test_what_people_changed_is_read_and_looked_at_though_the_watch_is_silent(
    cluster: Cluster, change: Json
) -> None:
    before, node = cluster.share_nodes[NAME], cluster.nodes[NAME]
    changed = cluster.put_share_node(before | {key: before[key] | value for key, value in change.items()})
    assert _write_another_status(node)
    assert cluster.share_nodes[NAME]["spec"] == changed["spec"]
    assert node.state.share_node == GPUShareNode.from_json(cluster.share_nodes[NAME])
    assert node.state.changed.is_set()


def test_a_write_gives_up_for_now_where_others_change_the_object_each_time(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    node, merge = cluster.nodes[NAME], cluster.merge
    writes: list[str] = []

    async def after_another_change(path: str, body: Json, *, dry_run: bool = False) -> Json:
        writes.append(path)
        cluster.put_share_node(cluster.share_nodes[NAME])
        return await merge(path, body, dry_run=dry_run)

    monkeypatch.setattr(Cluster, "merge", staticmethod(after_another_change))
    assert not _write_another_status(node)
    assert len(writes) == ATTEMPTS


def test_a_status_that_is_answered_as_it_was_written_is_no_change(cluster: Cluster) -> None:
    node = cluster.nodes[NAME]
    assert _write_another_status(node)
    node.state.put_share_node(GPUShareNode.from_json(cluster.share_nodes[NAME]))
    assert not node.state.changed.is_set()


def test_what_a_crd_of_another_version_leaves_out_is_not_written_again_and_again(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    node, merge = cluster.nodes[NAME], cluster.merge
    writes: list[str] = []

    async def keeps_no_lines(path: str, body: Json, *, dry_run: bool = False) -> Json:
        writes.append(path)
        kept = {key: value for key, value in body["status"].items() if key != "cardSummaries"}
        return await merge(path, {**body, "status": kept}, dry_run=dry_run)

    monkeypatch.setattr(Cluster, "merge", staticmethod(keeps_no_lines))
    for _ in range(3):
        _write_another_status(node)
    assert len(writes) == 1
