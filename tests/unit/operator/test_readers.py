"""From the API server's objects to what the operator knows of them."""

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.samples.operator import VOLCANO_CONFIG, volcano_backup

from gpushare_core.api.names import COMPONENT_LABEL, FINALIZER, POLICY_LABEL
from gpushare_core.api.share_node import MemoryTotals, UnitTotals
from gpushare_core.text.json_object import Json
from gpushare_operator.cluster import cache
from gpushare_operator.cluster.kinds import SHARE_NODES
from gpushare_operator.cluster.labels import ASKED_ANNOTATION, JOB_NAME_LABEL, PORT_ANNOTATION
from gpushare_operator.cluster.objects import CallsObject
from gpushare_operator.cluster.readers.extender_leases import read_calls
from gpushare_operator.cluster.readers.jobs import read_job
from gpushare_operator.cluster.readers.nodes import read_node
from gpushare_operator.cluster.readers.pods import read_pod
from gpushare_operator.cluster.readers.policies import read_policy
from gpushare_operator.cluster.readers.share_nodes import read_share_node
from gpushare_operator.cluster.readers.volcano import read_volcano_backup
from gpushare_operator.cluster.readers.workloads import read_daemon_set

MEMORY = "gpushare.io/memory"
SLICE, CARD = "gpushare.io/slice", "gpushare.io/card"


def meta(name: str = "x", version: int = 1, **extra: Any) -> Json:
    return {"name": name, "uid": f"uid-{name}", "resourceVersion": str(version), **extra}


@pytest.mark.parametrize(
    ("status", "outdated"),
    [
        pytest.param({}, 0, id="new"),
        pytest.param({"observedGeneration": 1, "desiredNumberScheduled": 3}, 3, id="not seen yet"),
        pytest.param(
            {"observedGeneration": 2, "desiredNumberScheduled": 3, "updatedNumberScheduled": 1},
            2,
            id="rolling",
        ),
        pytest.param(
            {"observedGeneration": 2, "desiredNumberScheduled": 3, "updatedNumberScheduled": 3}, 0, id="done"
        ),
    ],
)
def test_a_daemon_set_tells_how_many_pods_are_of_a_former_template(status: Json, outdated: int) -> None:
    body = {"metadata": meta(generation=2), "spec": {}, "status": status}
    assert read_daemon_set(body).outdated == outdated


def test_a_failed_job_tells_the_exit_code_that_ended_it() -> None:
    failed = {
        "type": "Failed",
        "status": "True",
        "reason": "PodFailurePolicy",
        "message": "Container hostctl for pod a/b failed with exit code 3 matching FailJob rule at index 0",
        "lastTransitionTime": "2026-11-21T12:00:00Z",
    }
    metadata = {"name": "a", "uid": "b", "annotations": {ASKED_ANNOTATION: '["default=1"]'}}
    job = read_job({"metadata": metadata, "status": {"conditions": [failed]}})
    assert (job.exit_code, job.asked) == (3, frozenset({"default=1"}))
    assert read_job({"metadata": {**metadata, "annotations": {ASKED_ANNOTATION: "?"}}}).asked == frozenset()


@pytest.mark.parametrize(
    ("log", "words"),
    [
        pytest.param('{"message": "first"}\n{"message": "port taken"}\n', "port taken", id="our log"),
        pytest.param("Traceback\nMemoryError", "MemoryError", id="plain text"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_the_last_words_of_a_container_that_ended_are_read(log: str, words: str) -> None:
    statuses = [{"state": {"waiting": {}}, "lastState": {"terminated": {"message": log}}}]
    annotations = {PORT_ANNOTATION: "22766"}
    pod = read_pod({"metadata": meta(annotations=annotations), "status": {"containerStatuses": statuses}})
    assert (pod.last_words, pod.extender_ports) == (words, (22766,))


def test_the_pod_of_a_manifest_on_a_host_is_none_of_ours_whatever_its_labels() -> None:
    labels = {COMPONENT_LABEL: "plugin", POLICY_LABEL: "default", JOB_NAME_LABEL: "install-1"}
    ours = read_pod({"metadata": meta(labels=labels)})
    assert (ours.component, ours.policy, ours.job) == ("plugin", "default", "install-1")
    mirror = {"kubernetes.io/config.mirror": "4c48494a"}
    theirs = read_pod({"metadata": meta(labels=labels, annotations=mirror)})
    assert (theirs.component, theirs.policy, theirs.job) == ("", "", "")


def test_a_pod_that_is_not_made_ready_says_where_the_reason_is() -> None:
    """A folder of its host that cannot be made is told in Events only."""
    waiting = {"state": {"waiting": {"reason": "PodInitializing"}}}
    metadata = {**meta(), "name": "extender-x", "namespace": "gpushare-system"}
    pod = read_pod({"metadata": metadata, "status": {"initContainerStatuses": [waiting]}})
    expected = "PodInitializing; kubectl -n gpushare-system describe pod extender-x says what it waits for"
    assert pod.waiting == expected


def test_of_several_containers_those_tell_that_do_not_start() -> None:
    waiting = {"state": {"waiting": {"reason": "PodInitializing"}}}
    failing = {"state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}}
    ended = {"state": {"waiting": {}}, "lastState": {"terminated": {"message": "no such option"}}}
    initial = {"initContainerStatuses": [failing], "containerStatuses": [waiting]}
    assert read_pod({"metadata": meta(), "status": initial}).waiting == "CrashLoopBackOff: back-off"
    second = {"containerStatuses": [{"state": {"running": {}}}, ended]}
    assert read_pod({"metadata": meta(), "status": second}).last_words == "no such option"


def test_a_policy_is_read() -> None:
    body = {
        "metadata": meta(generation=3, creationTimestamp="2026-01-01T00:00:00Z", finalizers=[FINALIZER]),
        "spec": {"nodes": [{"names": ["gpu-1"]}]},
        "status": {"observedGeneration": 2},
    }
    read = read_policy(body)
    assert (read.generation, read.finalizers, read.deleting) == (3, (FINALIZER,), False)
    assert read.spec is not None
    assert read.status.observed_generation == 2


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        pytest.param({}, "nodes: Field required", id="empty"),
        pytest.param({"nodes": [{"mode": "Half"}]}, "nodes.0.mode", id="unknown mode"),
        pytest.param(None, "", id="missing"),
    ],
)
def test_a_policy_that_does_not_parse_says_why(spec: Any, why: str) -> None:
    read = read_policy({"metadata": meta(), "spec": spec})
    assert read.spec is None
    assert why in read.error


def test_a_policy_with_a_broken_status_is_read_as_without() -> None:
    body = {"metadata": meta(), "spec": {"nodes": [{"names": ["a"]}]}, "status": {"conditions": "?"}}
    assert read_policy(body).status.conditions == []


@pytest.mark.parametrize(
    ("status", "ready", "offered"),
    [
        pytest.param({}, False, (), id="nothing known"),
        pytest.param({"conditions": [{"type": "Ready", "status": "True"}]}, True, (), id="ready"),
        pytest.param({"conditions": [{"type": "Ready", "status": "Unknown"}]}, False, (), id="unknown"),
        pytest.param({"capacity": {"cpu": "1"}}, False, (), id="others' resources"),
        pytest.param({"capacity": {MEMORY: "0"}}, False, (MEMORY,), id="zero is shown"),
        pytest.param({"allocatable": {MEMORY: "4"}}, False, (MEMORY,), id="allocatable"),
        pytest.param(
            {"capacity": {SLICE: "4", CARD: "0"}}, False, (CARD, SLICE), id="the resources of every mode"
        ),
    ],
)
def test_a_node_is_read(status: Json, *, ready: bool, offered: tuple[str, ...]) -> None:
    read = read_node({"metadata": meta(), "status": status})
    assert (read.ready, read.offered) == (ready, offered)


def test_the_classes_of_a_mixed_node_are_read_in_their_order() -> None:
    resources = [
        {"resource": "memory", "total": 8, "allocated": 4},
        {"resource": "slice", "total": "?"},
        {"resource": "card", "total": 2},
    ]
    status = {"memoryUnit": "1Gi, 1/2 card, 1 card", "resources": resources}
    read = read_share_node({"metadata": meta(), "spec": {}, "status": status})
    assert list(read.units_by_kind.items()) == [
        ("1Gi", UnitTotals(total=8, allocated=4)),
        ("1/2 card", UnitTotals()),
        ("1 card", UnitTotals(total=2)),
    ]


COUNT = "aliyun.com/gpu-count"


def test_amounts_are_kept_of_numbers_of_cards_only() -> None:
    status = {
        "capacity": {COUNT: "4", MEMORY: "64", SLICE: "0"},
        "allocatable": {COUNT: "0", MEMORY: "63", CARD: "0"},
    }
    read = read_node({"metadata": meta(), "status": status})
    assert read.counts == {COUNT: ("4", "0")}
    assert read.zeros == {SLICE, CARD}


@pytest.mark.parametrize(
    ("managers", "own"),
    [
        pytest.param(["gpushare-operator"], {"gpushare"}, id="the operator set it"),
        pytest.param(["kubectl-label"], set(), id="a person set it"),
        pytest.param(["kubelet", "gpushare-operator"], set(), id="both did, as by server-side apply"),
        pytest.param([], set(), id="nobody knows"),
    ],
)
def test_a_label_of_a_dialect_is_ours_if_the_operator_set_it_last(managers: list[str], own: set[str]) -> None:
    fields: Json = {"f:metadata": {"f:labels": {".": {}, "f:gpushare": {}, "f:mine": {}}}}
    managed = [{"manager": manager, "fieldsV1": fields} for manager in managers]
    labels = {"gpushare": "true", "mine": "yes"}
    read = read_node({"metadata": meta(labels=labels, managedFields=managed), "status": {}})
    assert read.own_labels == own


def test_a_share_node_is_read() -> None:
    share = read_share_node(
        {
            "metadata": meta(generation=4, ownerReferences=[{"uid": "p"}]),
            "spec": {"policy": "default"},
            "status": {
                "observedGeneration": 4,
                "units": {"total": 32, "allocated": 4},
                "memory": {"total": "32Gi"},
                "cards": [
                    {"uuid": "a", "index": 0, "health": "Healthy"},
                    {"uuid": "b", "index": 1, "health": "Unhealthy"},
                    {"uuid": "c", "index": 2, "health": "Healthy", "cordoned": True},
                ],
            },
        }
    )
    assert (share.policy, share.owners) == ("default", ("p",))
    assert share.units == UnitTotals(total=32, allocated=4)
    assert share.memory == MemoryTotals(total="32Gi", allocated="0", used="0")
    assert (share.cards, share.unhealthy_cards, share.closed_cards) == (3, 1, (1, 2))
    assert share.card_indices == (0, 1, 2)


def test_totals_that_keep_to_no_schema_count_as_nothing() -> None:
    status = {"units": {"total": 1.5}, "memory": {"total": 5}}
    share = read_share_node({"metadata": meta(), "spec": {}, "status": status})
    assert (share.units, share.memory) == (UnitTotals(), MemoryTotals())


@pytest.mark.parametrize("spec", [["x"], "x", 1])
def test_a_share_node_whose_spec_is_no_object_is_not_known(spec: Any) -> None:
    """The CRD lets none pass. It was held, and whoever asked it for its policy failed, for all nodes."""
    body = {"metadata": meta(), "spec": spec}
    assert cache.read(SHARE_NODES, body).entry is None


def test_a_share_node_without_status_is_read() -> None:
    assert read_share_node({"metadata": meta(), "spec": {}}).units == UnitTotals(total=0, allocated=0)


@pytest.mark.parametrize(
    ("conditions", "state"),
    [
        pytest.param([], "active", id="running"),
        pytest.param([("Suspended", "False")], "active", id="not suspended"),
        pytest.param([("SuccessCriteriaMet", "True")], "active", id="about to end"),
        pytest.param([("Complete", "True")], "complete", id="complete"),
        pytest.param([("FailureTarget", "True"), ("Failed", "True")], "failed", id="failed"),
    ],
)
def test_a_job_is_read(conditions: list[tuple[str, str]], state: str) -> None:
    moment = {"lastTransitionTime": "2026-11-21T12:00:00Z", "reason": "Why"}
    ends = [{"type": kind, "status": status, **moment} for kind, status in conditions]
    read = read_job({"metadata": meta(labels={"gpushare.io/sequence": "7"}), "status": {"conditions": ends}})
    assert [name for name in ("active", "complete", "failed") if getattr(read, name)] == [state]
    assert read.sequence == 7
    assert (read.finished is None) is (state == "active")


def test_a_pod_tells_how_it_ended() -> None:
    ended = {"terminated": {"exitCode": 2, "message": "{}"}}
    read = read_pod({"metadata": meta(), "status": {"containerStatuses": [{"state": ended}]}})
    assert (read.exit_code, read.termination, read.waiting) == (2, "{}", "")


def test_a_pod_whose_init_container_failed_tells_what_that_said() -> None:
    """The program's own container never begins, and has no exit code."""
    metadata = meta(labels={COMPONENT_LABEL: "hostctl"}, namespace="gpushare-system")
    ended = {"terminated": {"exitCode": 1, "message": "exec format error"}}
    initial = {"name": "scheduler-image", "state": ended}
    own = {"name": "hostctl", "state": {"waiting": {"reason": "PodInitializing"}}}
    status = {"initContainerStatuses": [initial], "containerStatuses": [own]}
    read = read_pod({"metadata": metadata, "status": status})
    assert (read.exit_code, read.termination) == (None, "exec format error")

    done = {**initial, "state": {"terminated": {"exitCode": 0, "message": "Kubernetes v1.36.3"}}}
    status = {"initContainerStatuses": [done], "containerStatuses": [own]}
    read = read_pod({"metadata": metadata, "status": status})
    assert read.termination == ""


def test_a_pod_tells_why_it_waits() -> None:
    waits = {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}
    assert (
        read_pod({"metadata": meta(), "status": {"containerStatuses": [{"state": waits}]}}).waiting
        == "ErrImagePull: no such image"
    )


def test_a_pod_that_terminates_is_not_ready() -> None:
    status = {"conditions": [{"type": "Ready", "status": "True"}]}
    assert read_pod({"metadata": meta(), "status": status}).ready
    assert not read_pod({"metadata": meta(deletionTimestamp="2026-11-21T12:00:00Z"), "status": status}).ready


CALLS: Json = {
    "metadata": {
        "name": "gpushare-extender-calls",
        "uid": "u",
        "annotations": {"gpushare.io/called-port": "22766"},
        "managedFields": [
            {"manager": "kubectl", "time": "2026-11-21T10:00:00Z"},
            {"manager": "gpushare-extender", "time": "2026-11-21T11:00:00Z"},
        ],
    },
    "spec": {"holderIdentity": "cp_1", "renewTime": "2031-01-01T00:00:00.000000Z"},
}


def test_calls_are_dated_by_the_server_whatever_the_hosts_clock_says() -> None:
    calls = read_calls(CALLS)
    assert (calls.port, calls.host, calls.at) == (22766, "cp", datetime(2026, 11, 21, 11, tzinfo=UTC))


def test_a_lease_as_it_comes_with_the_manifests_says_nothing() -> None:
    fresh = {**CALLS["metadata"], "annotations": {}}
    assert read_calls({"metadata": fresh}) == CallsObject(name="gpushare-extender-calls")


def test_a_backup_is_read_as_it_was_written() -> None:
    data = {
        "namespace": "volcano-system",
        "configMap": "volcano-scheduler-configmap",
        "key": "volcano-scheduler.conf",
        "original": VOLCANO_CONFIG,
        "written": volcano_backup().written,
        "additions": "deviceshare=plugin,predicates=arguments",
    }
    body = {"metadata": {"name": "gpushare-volcano-backup", "uid": "uid-backup"}, "data": data}
    assert read_volcano_backup(body) == volcano_backup()


def test_a_damaged_backup_is_read_all_the_same() -> None:
    assert read_volcano_backup({"metadata": {"name": "a", "uid": "u"}}).location.namespace == ""
