"""What ``undo`` says it will do is what the operator does, in its order, to what is there."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from tests.samples.extender import pod_update

from gpushare_cli.decide.objects.share_node import ObservedShareNode
from gpushare_cli.decide.undo.objects import (
    BACKEND_ANNOTATION,
    EXTERNAL,
    LEAVE_FILES_ANNOTATION,
    UndoLease,
    UndoNode,
    UndoObject,
    UndoObjects,
    UndoPolicy,
)
from gpushare_cli.decide.undo.plan import EXTENDER, STEPS, VOLCANO_BACKUP, Undoing, chosen, undo_plan
from gpushare_cli.decide.undo.report import UndoPlan
from gpushare_cli.errors import CannotLookError
from gpushare_core.api.names import COMPONENT_LABEL, PLUGIN_NODE_LABEL, POLICY_LABEL, SCHEDULER_LABEL
from gpushare_core.api.plugin_heartbeat import MAX_NAMED_PODS, heartbeat_lease, isolation_files
from gpushare_operator.backends.table import BACKENDS
from gpushare_operator.cluster import labels
from gpushare_operator.decide.teardown.steps import teardown_steps
from gpushare_operator.desired import names

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def of(shape: Any, **fields: Any) -> Any:
    return msgspec.convert(fields, shape)


def policy(name: str, *, created: str = "2026-01-01T00:00:00Z", **fields: Any) -> UndoPolicy:
    made: UndoPolicy = of(UndoPolicy, metadata={"name": name, "creationTimestamp": created}, **fields)
    return made


def share_node(name: str, of_policy: str, *holders: str) -> ObservedShareNode:
    pods = [{"uid": holder, "units": 4, "namespace": "ml", "name": holder} for holder in holders]
    cards = [{"uuid": "GPU-0", "units": 16, "pods": pods}]
    made: ObservedShareNode = of(
        ObservedShareNode, metadata={"name": name}, spec={"policy": of_policy}, status={"cards": cards}
    )
    return made


def node(name: str, *, ready: bool = True, **marks: str) -> UndoNode:
    conditions = [{"type": "Ready", "status": str(ready)}]
    keys = {"policy": PLUGIN_NODE_LABEL, "scheduler": SCHEDULER_LABEL}
    marked = {keys[mark]: value for mark, value in marks.items()}
    made: UndoNode = of(
        UndoNode, metadata={"name": name, "labels": marked}, status={"conditions": conditions}
    )
    return made


def made_object(name: str, *, available: int = 0, **metadata: Any) -> UndoObject:
    made: UndoObject = of(
        UndoObject,
        metadata={"name": name, "namespace": "gpushare-system", **metadata},
        status={"availableReplicas": available},
    )
    return made


OPERATOR = made_object("gpushare-operator", available=1, labels={COMPONENT_LABEL: "operator"})
PLUGIN = made_object("gpushare-plugin-default", labels={POLICY_LABEL: "default"})


def cluster(**fields: Any) -> UndoObjects:
    """One policy with two nodes, connected by an edited kube-scheduler."""
    present: dict[str, Any] = {
        "policies": [policy("default")],
        "share_nodes": [share_node("gpu-1", "default", "anna"), share_node("gpu-2", "default")],
        "nodes": [
            node("gpu-1", policy="default"),
            node("gpu-2", policy="default"),
            node("cp-1", scheduler="edited"),
        ],
        "daemon_sets": [PLUGIN, made_object(EXTENDER)],
        "deployments": [OPERATOR],
        "jobs": [made_object("gpushare-scheduler-install-cp-1-1")],
        "config_maps": [],
    }
    return UndoObjects(**{**present, **fields})


def plan(objects: UndoObjects, *named: str) -> UndoPlan:
    return undo_plan(Undoing(objects=objects, going=chosen(objects.policies, named)))


def steps(found: UndoPlan) -> dict[str, list[str]]:
    return {step.name: list(step.objects) for step in found.steps}


def test_the_steps_are_the_operators_in_its_order() -> None:
    assert [row.name for row in STEPS] == [step.name for step in teardown_steps(None)]


def test_a_step_of_a_backend_is_left_out_where_the_operator_leaves_it_out() -> None:
    for backend in BACKENDS:
        kept = [row.name for row in STEPS if row.backend != backend]
        assert kept == [step.name for step in teardown_steps(backend)]


def test_the_names_are_the_operators() -> None:
    assert (EXTENDER, VOLCANO_BACKUP) == (names.EXTENDER_NAME, names.VOLCANO_BACKUP)
    assert (BACKEND_ANNOTATION, EXTERNAL) == (labels.BACKEND_ANNOTATION, labels.EXTERNAL_MARK)
    assert LEAVE_FILES_ANNOTATION == labels.LEAVE_ISOLATION_FILES_ANNOTATION


def test_what_is_there_is_undone_step_by_step() -> None:
    assert steps(plan(cluster())) == {
        "GPUShareNodes": ["gpu-1", "gpu-2"],
        "schedulers restored": ["cp-1"],
        "extender": ["gpushare-system/gpushare-extender"],
        "marks on control-plane nodes": ["cp-1"],
        "Jobs": ["gpushare-system/gpushare-scheduler-install-cp-1-1"],
        "extender stopped": ["cp-1"],
        "plugins and labels": ["gpushare-system/gpushare-plugin-default", "gpu-1", "gpu-2"],
        "capacity on nodes": ["gpu-1", "gpu-2"],
        "finalizer": ["default"],
    }


def test_pods_are_named_before_their_plugin_reports_them() -> None:
    """Of the nodes of the policies that go."""
    booked = [pod_update("berta", node="gpu-2", c0=4), pod_update("carla", node="gpu-9", c0=4)]
    found = [(pod.name, pod.node) for pod in plan(cluster(booked=booked)).pods]
    assert found == [("berta", "gpu-2"), ("anna", "gpu-1")]


def test_pods_that_run_are_named() -> None:
    (pod,) = plan(cluster()).pods
    assert (pod.namespace, pod.name, pod.node) == ("ml", "anna", "gpu-1")


def test_a_policy_that_stays_keeps_its_backend_and_its_nodes() -> None:
    two = cluster(
        policies=[policy("default"), policy("later")],
        share_nodes=[share_node("gpu-1", "default"), share_node("gpu-2", "later")],
        nodes=[
            node("gpu-1", policy="default"),
            node("gpu-2", policy="later"),
            node("cp-1", scheduler="edited"),
        ],
    )
    found = plan(two, "default")
    assert (found.staying, found.needed_backend) == (["later"], "KubeScheduler")
    assert steps(found) == {
        "GPUShareNodes": ["gpu-1"],
        "plugins and labels": ["gpushare-system/gpushare-plugin-default", "gpu-1"],
        "capacity on nodes": ["gpu-1"],
        "finalizer": ["default"],
    }


def test_a_policy_that_stays_without_nodes_needs_no_scheduler() -> None:
    found = plan(cluster(policies=[policy("default"), policy("idle")]), "default")
    assert found.needed_backend is None
    assert "schedulers restored" in steps(found)


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        (
            {
                "daemon_sets": [made_object(EXTENDER, annotations={BACKEND_ANNOTATION: "External"})],
                "nodes": [node("cp-1", scheduler=EXTERNAL)],
            },
            ["external extender", "external extender stopped", "external marks"],
        ),
        (
            {"deployments": [OPERATOR, made_object("gpushare-scheduler")]},
            ["dedicated scheduler", "dedicated scheduler stopped"],
        ),
        ({"config_maps": [made_object(VOLCANO_BACKUP)]}, ["Volcano's ConfigMap restored"]),
    ],
    ids=["External", "Dedicated", "Volcano"],
)
def test_other_backends(objects: dict[str, Any], expected: list[str]) -> None:
    empty: dict[str, Any] = {"share_nodes": [], "nodes": [], "daemon_sets": [], "jobs": []}
    found = plan(cluster(**{**empty, **objects}))
    assert [*steps(found)] == [*expected, "finalizer"]


def test_what_will_be_in_the_way_is_said_before() -> None:
    (warning,) = plan(cluster(deployments=[])).warnings
    assert warning.says.startswith("No operator is available")
    assert warning.command.startswith("kubectl get deployments")
    lost = cluster(nodes=[node("cp-1", ready=False, scheduler="edited")])
    (warning,) = plan(lost).warnings
    assert "cp-1 is not Ready" in warning.says
    assert warning.command == "kubectl annotate gpusharepolicy default gpushare.io/let-go=cp-1"


def lease(name: str, *pods: str) -> UndoLease:
    made: UndoLease = of(
        UndoLease, metadata=heartbeat_lease(name, "", NOW, files=isolation_files(pods))["metadata"]
    )
    return made


def test_pods_that_need_isolation_files_are_waited_for() -> None:
    found = plan(cluster(leases=[lease("gpu-1", "ml/anna"), lease("gpu-2"), lease("gpu-9", "ml/other")]))
    names = [*steps(found)]
    assert steps(found)["isolation files"] == ["ml/anna"]
    assert names[names.index("isolation files") + 1] == "plugins and labels"
    (warning,) = found.warnings
    assert warning.says.startswith("What comes after the isolation files waits until ml/anna has ended.")
    assert warning.command == "kubectl annotate gpusharepolicy default gpushare.io/leave-isolation-files=true"
    assert found.nodes_with_files == []


def test_they_are_waited_for_when_the_policy_is_half_undone() -> None:
    found = plan(cluster(share_nodes=[], leases=[lease("gpu-1", "ml/anna")]))
    assert steps(found)["isolation files"] == ["ml/anna"]


def test_of_many_pods_that_need_them_some_are_named() -> None:
    many = lease("gpu-1", *(f"ml/{number:02}" for number in range(MAX_NAMED_PODS + 3)))
    waited_for = steps(plan(cluster(leases=[many])))["isolation files"]
    assert (len(waited_for), waited_for[-1]) == (MAX_NAMED_PODS + 1, "3 more on gpu-1")


def test_isolation_files_that_a_policy_leaves_on_nodes_are_said_to_stay() -> None:
    leaving = of(UndoPolicy, metadata={"name": "default", "annotations": {LEAVE_FILES_ANNOTATION: "true"}})
    found = plan(cluster(policies=[leaving], leases=[lease("gpu-1", "ml/anna")]))
    assert "isolation files" not in steps(found)
    assert (found.nodes_with_files, found.warnings) == (["gpu-1"], [])


def test_nobody_waits_for_a_node_that_is_not_ready() -> None:
    lost = [node("gpu-1", ready=False, policy="default"), node("gpu-2", policy="default")]
    found = plan(cluster(nodes=lost, leases=[lease("gpu-1", "ml/anna")]))
    assert "isolation files" not in steps(found)
    assert found.nodes_with_files == ["gpu-1"]


def test_nodes_that_another_policy_claims() -> None:
    conflicted = {
        "conditions": [{"type": "Conflicted", "status": "True", "message": "gpu-1 has policy default"}]
    }
    found = plan(cluster(policies=[policy("default"), policy("later", status=conflicted)]), "default")
    assert [warning.says for warning in found.warnings] == [
        "Nodes may go to policy later, which says: gpu-1 has policy default"
    ]


def test_a_policy_that_is_not_there() -> None:
    with pytest.raises(CannotLookError, match="there is no GPUSharePolicy other: there are default"):
        plan(cluster(), "other")


def test_without_policies_there_is_nothing_to_undo() -> None:
    assert plan(cluster(policies=[])).policies == []
