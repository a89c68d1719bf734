"""Which pods hold units or wait for them, summed by namespace beside its quota."""

from datetime import UTC, datetime

from tests.samples.shared_cards import MOMENT, card, pending_pod_object, reading, share, share_node_object

from gpushare_cli.decide.holders.namespaces_report import (
    NamespaceHolding,
    NamespacesReport,
    QuotaLimit,
    namespaces_report,
)
from gpushare_cli.decide.holders.pod_holding import HolderPhase, PodHolding, pod_holdings
from gpushare_cli.decide.holders.pods_report import PodSort, pods_report
from gpushare_cli.decide.inspection.cluster_reading import ClusterReading
from gpushare_cli.decide.inspection.node_reader import shared_nodes
from gpushare_cli.decide.objects.known_pod import KnownPod, KnownPodMetadata
from gpushare_cli.decide.objects.resource_quota import QuotaAmounts, QuotaMetadata, ResourceQuotaObject

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
GI = 2**30

READ = reading(
    share_node_object(
        "n1",
        card(0, 16, share("a/x", 4, used="1Gi"), share("b/y", 8, used="9Gi"), usedMemory="10Gi"),
        card(1, 16, share("a/gone", 2, orphaned=True)),
    ),
    share_node_object(
        "n2",
        *(card(index, 4, share("b/two", 1), memory="8Gi", node="n2") for index in range(2)),
        mode="Slices",
        unit="1/4 card",
    ),
    pods=(
        pending_pod_object("a/new", 3, node="n1", card="GPU-n1-1"),
        pending_pod_object("b/waits", 20, message="0/2 nodes are available"),
        pending_pod_object("b/other", 1, resource="example.com/fpga"),
        pending_pod_object("c/theirs", 1, resource="nvidia.com/gpu"),
    ),
)
NODES = shared_nodes(READ)


def found(read: ClusterReading = READ, **known: KnownPod) -> dict[str, PodHolding]:
    pods = pod_holdings(
        shared_nodes(read), read, {name.replace("_", "/"): pod for name, pod in known.items()}
    )
    return {f"{pod.namespace}/{pod.name}": pod for pod in pods}


def test_those_that_hold_and_those_that_wait() -> None:
    assert {name: pod.state for name, pod in found().items()} == {
        "a/gone": HolderPhase.ORPHANED,
        "a/new": HolderPhase.STARTING,
        "a/x": HolderPhase.RUNNING,
        "b/two": HolderPhase.RUNNING,
        "b/waits": HolderPhase.WAITING,
        "b/y": HolderPhase.RUNNING,
    }


def test_a_pod_on_several_cards_is_one_row() -> None:
    pod = found()["b/two"]
    assert ([held.index for held in pod.cards], pod.units) == ([0, 1], {"gpushare.io/slice": 2})
    assert (pod.node, pod.asked_bytes, pod.used_bytes) == ("n2", 4 * GI, 0)


def test_a_pod_that_waits_says_for_what() -> None:
    pod = found()["b/waits"]
    assert (pod.units, pod.asked_bytes, pod.node, pod.cards) == ({"gpushare.io/memory": 20}, None, "", ())
    assert pod.waits_for == "0/2 nodes are available"
    assert pod.created == MOMENT


def test_use_past_what_was_asked_for_is_marked() -> None:
    assert {name for name, pod in found().items() if pod.exceeds} == {"b/y"}


def test_a_pod_that_ends_is_terminating() -> None:
    ending = KnownPod(
        KnownPodMetadata(uid="a/x", creation_timestamp=MOMENT, deletion_timestamp="2026-01-02T03:04:00Z")
    )
    pod = found(a_x=ending)["a/x"]
    assert (pod.state, pod.created) == (HolderPhase.TERMINATING, MOMENT)


def test_a_pod_bound_by_hand_has_a_node_and_no_card_yet() -> None:
    read = reading(share_node_object("n1", card(0, 16)), pods=(pending_pod_object("a/static", 2, node="n1"),))
    pod = found(read)["a/static"]
    assert (pod.state, pod.node, pod.cards, pod.holds) == (HolderPhase.STARTING, "n1", (), False)


def test_of_one_namespace_sorted_by_what_they_hold() -> None:
    report = pods_report([*found().values()], namespace="b", sort=PodSort.HELD, now=NOW)
    assert [pod.name for pod in report.pods] == ["y", "two", "waits"]
    assert report.names == ["pod/y", "pod/two", "pod/waits"]


def test_the_oldest_first_and_unknown_ages_last() -> None:
    report = pods_report([*found().values()], namespace="", sort=PodSort.AGE, now=NOW)
    assert [pod.created for pod in report.pods] == [MOMENT, MOMENT, "", "", "", ""]


def quota(namespace: str, hard: dict[str, str | int], used: dict[str, str | int]) -> ResourceQuotaObject:
    return ResourceQuotaObject(
        metadata=QuotaMetadata("gpu", namespace), status=QuotaAmounts(hard=hard, used=used)
    )


def summed(*quotas: ResourceQuotaObject, namespace: str = "") -> NamespacesReport:
    return namespaces_report([*found().values()], NODES, quotas, namespace=namespace)


def of(report: NamespacesReport, name: str) -> NamespaceHolding:
    return next(namespace for namespace in report.namespaces if namespace.name == name)


def test_sums_by_namespace() -> None:
    report = summed()
    a, b = of(report, "a"), of(report, "b")
    assert (a.pods, a.cards, a.units) == (3, 2, {"gpushare.io/memory": 9})
    assert (b.pods, b.cards, b.units) == (2, 3, {"gpushare.io/slice": 2, "gpushare.io/memory": 8})
    assert (b.waiting_pods, b.waiting_units) == (1, {"gpushare.io/memory": 20})
    assert (b.asked_bytes, b.used_bytes) == (12 * GI, 9 * GI)
    assert a.used_bytes is None  # of a/new nothing is known


def test_a_quota_of_our_resources_stands_beside_them() -> None:
    report = summed(
        quota("a", {"requests.gpushare.io/memory": "32", "cpu": "4"}, {"requests.gpushare.io/memory": "9"}),
        quota("d", {"requests.aliyun.com/gpu-mem": 8}, {}),
    )
    assert of(report, "a").quotas == [
        QuotaLimit(quota="gpu", resource="gpushare.io/memory", hard_units=32, used_units=9)
    ]
    assert (of(report, "d").pods, len(of(report, "d").quotas or ())) == (0, 1)
    assert of(report, "b").quotas == ()


def test_the_keys_that_a_quota_can_limit_are_those_that_nodes_serve() -> None:
    assert summed().quota_keys == ["requests.gpushare.io/memory", "requests.gpushare.io/slice"]


def test_one_namespace() -> None:
    assert [namespace.name for namespace in summed(namespace="b").namespaces] == ["b"]


def test_quotas_that_cannot_be_read_are_unknown() -> None:
    report = namespaces_report([*found().values()], NODES, None)
    assert of(report, "a").quotas is None
