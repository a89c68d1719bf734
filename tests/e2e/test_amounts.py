"""Amounts as Kubernetes' grammar lets people write them: the API server keeps them as they were written."""

import json

import pytest
from tests.e2e.books import read_books
from tests.e2e.observe import PODS, condition, watch_until
from tests.e2e.outcomes import is_running
from tests.e2e.workloads import MEMORY, SLICE, create, pod

from gpushare_core.text.json_object import Json
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.errors import LocalClusterError

pytestmark = [pytest.mark.e2e, pytest.mark.connected, pytest.mark.usefixtures("shared_policy", "books_agree")]


def asking(name: str, *amounts: str, on: str | None = "gpu-1", node: str | None = None) -> Json:
    """A pod with a container for each of ``amounts``; ``node`` binds it past the scheduler."""
    body = pod(name, {f"c{number}": 1 for number in range(len(amounts))}, on=on, node=node)
    for container, amount in zip(body["spec"]["containers"], amounts, strict=True):
        container["resources"]["limits"][MEMORY] = amount
    return body


def await_running(cluster: LocalCluster, namespace: str, name: str) -> None:
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: any(pod["metadata"]["name"] == name and is_running(pod) for pod in pods),
        what=f"{name} runs",
    )


def units_of(cluster: LocalCluster, namespace: str, name: str) -> list[int]:
    environment = read_books(cluster, namespace).environment
    return sorted(share.units for key, share in environment.items() if key.pod == name)


@pytest.mark.parametrize(
    ("amounts", "units"),
    [
        pytest.param(["+4"], [4], id="a sign"),
        pytest.param(["4e000"], [4], id="an exponent of zeros"),
        pytest.param(["4." + "0" * 46], [4], id="zeros behind a point"),
        pytest.param(["0004"], [4], id="zeros in front"),
        pytest.param(["+6", "6"], [6, 6], id="one container with a sign and one without"),
    ],
)
def test_an_amount_is_given_as_it_was_meant(
    cluster: LocalCluster, namespace: str, amounts: list[str], units: list[int]
) -> None:
    create(cluster, namespace, [asking("odd", *amounts)])
    await_running(cluster, namespace, "odd")
    assert units_of(cluster, namespace, "odd") == units


def test_too_much_with_a_sign_waits_and_nobody_else_pays(cluster: LocalCluster, namespace: str) -> None:
    create(
        cluster,
        namespace,
        [asking("plus20", "+20"), *(asking(f"plain-{number}", "3") for number in range(8))],
    )

    def decided(pods: list[Json]) -> bool:
        message = next(
            condition(pod, "PodScheduled").get("message", "")
            for pod in pods
            if pod["metadata"]["name"] == "plus20"
        )
        return "asked 20, largest free" in message and sum(map(is_running, pods)) == 8

    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: len(pods) == 9 and decided(list(pods)),
        what="plus20 waits with a reason, and the others run",
    )


def test_who_is_bound_past_the_scheduler_gets_what_the_kubelet_reads(
    cluster: LocalCluster, namespace: str
) -> None:
    create(cluster, namespace, [asking("odd", "+5", on=None, node="gpu-2"), asking("plain", "5", on="gpu-2")])
    for name in ("odd", "plain"):
        await_running(cluster, namespace, name)
        assert units_of(cluster, namespace, name) == [5]


@pytest.mark.parametrize("amount", [str(2**150), "4e30", "18446744073709551620", "2G", "4Gi"])
def test_more_than_any_node_has_is_refused_at_once(
    cluster: LocalCluster, namespace: str, amount: str
) -> None:
    """Beyond 64 bits the numbers of scheduler and kubelet begin anew: they would count 0, or 4."""
    with pytest.raises(LocalClusterError, match=f"container c0 asks for {amount} of {MEMORY}, and no node"):
        cluster.kubectl(
            "create", "--dry-run=server", "-n", namespace, "-f", "-", stdin=json.dumps(asking("odd", amount))
        )


@pytest.mark.parametrize(
    ("amount", "units", "write"),
    [("4Gi", "4294967296", "4"), ("512Mi", "536870912", "1"), ("4G", "4000000000", "4")],
)
def test_who_writes_bytes_is_told_how_many_units_that_is_and_what_to_write(
    cluster: LocalCluster, namespace: str, amount: str, units: str, write: str
) -> None:
    with pytest.raises(
        LocalClusterError, match=f"it is {units} units.*1Gi by default: with that, write {write}$"
    ):
        cluster.kubectl(
            "create", "--dry-run=server", "-n", namespace, "-f", "-", stdin=json.dumps(asking("odd", amount))
        )


def test_as_many_units_as_a_node_of_another_system_may_have_are_let_pass(
    cluster: LocalCluster, namespace: str
) -> None:
    body = asking("odd", "81920")
    body["spec"]["containers"][0]["resources"]["limits"] = {"volcano.sh/gpu-memory": "81920"}
    cluster.kubectl("create", "--dry-run=server", "-n", namespace, "-f", "-", stdin=json.dumps(body))


def test_an_amount_that_fills_a_message_is_refused_with_a_sentence(
    cluster: LocalCluster, namespace: str
) -> None:
    with pytest.raises(LocalClusterError, match="asks for more units of a card than any node has"):
        cluster.kubectl(
            "create",
            "--dry-run=server",
            "-n",
            namespace,
            "-f",
            "-",
            stdin=json.dumps(asking("odd", "9" * 6000)),
        )


@pytest.mark.parametrize("nothing", ["0", "+0", "-0", "0e3", "00", "0.0", "0Ki"])
def test_nothing_of_one_resource_is_not_two_resources(
    cluster: LocalCluster, namespace: str, nothing: str
) -> None:
    body = asking("odd", "4")
    body["spec"]["containers"][0]["resources"]["limits"][SLICE] = nothing
    assert "pod/odd" in cluster.kubectl(
        "create", "--dry-run=server", "-n", namespace, "-o", "name", "-f", "-", stdin=json.dumps(body)
    )
