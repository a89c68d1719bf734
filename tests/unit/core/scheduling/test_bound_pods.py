"""The pods of a node as the API server lists them."""

import msgspec
import pytest

from gpushare_core.scheduling.preemption.bound_pods import BoundPod, PodList
from gpushare_core.text.json_object import Json


def pod(metadata: Json | None = None, spec: Json | None = None, status: Json | None = None) -> BoundPod:
    body = {
        "metadata": {"name": "a", "namespace": "default", "uid": "uid-a", **(metadata or {})},
        "spec": {"containers": [], **(spec or {})},
        "status": {"phase": "Running", **(status or {})},
    }
    (read,) = msgspec.json.decode(msgspec.json.encode({"items": [body]}), type=PodList).pods()
    return read


def test_what_is_not_said_is_the_default() -> None:
    read = pod()
    assert (read.priority, read.grace, read.is_terminating, read.comes_back) == (0, 30, False, False)


def test_its_importance_follows_from_priority_and_start() -> None:
    older = pod(spec={"priority": 5}, status={"startTime": "2026-11-21T10:00:00Z"})
    younger = pod(spec={"priority": 5}, status={"startTime": "2026-11-21T10:00:01Z"})
    higher = pod(spec={"priority": 6}, status={"startTime": "2026-11-21T10:00:02Z"})
    assert sorted([higher, older, younger], key=lambda each: each.importance) == [younger, older, higher]


def test_one_that_has_not_begun_counts_from_when_it_was_made() -> None:
    made = pod({"creationTimestamp": "1970-01-01T00:01:00Z"})
    assert made.started == 60.0


def test_a_time_that_is_none_is_long_ago() -> None:
    assert pod(status={"startTime": "yesterday"}).started == 0.0


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param({"annotations": {"kubernetes.io/config.mirror": "x"}}, id="static"),
        pytest.param({"ownerReferences": [{"kind": "DaemonSet", "controller": True}]}, id="DaemonSet"),
    ],
)
def test_what_the_node_runs_again_at_once_comes_back(metadata: Json) -> None:
    assert pod(metadata).comes_back


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param({"ownerReferences": [{"kind": "ReplicaSet", "controller": True}]}, id="ReplicaSet"),
        pytest.param({"ownerReferences": [{"kind": "DaemonSet"}]}, id="an owner that is no controller"),
    ],
)
def test_what_may_run_elsewhere_does_not(metadata: Json) -> None:
    assert not pod(metadata).comes_back


def test_deletion_and_grace() -> None:
    read = pod({"deletionTimestamp": "2026-11-21T10:00:00Z"}, {"terminationGracePeriodSeconds": 0})
    assert (read.is_terminating, read.grace) == (True, 0)
