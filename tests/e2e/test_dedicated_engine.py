"""Backend Dedicated with engine Plugin: a kube-scheduler of our own that knows cards, and no extender.

Where there is none for the server's minor, the other engine serves and says so.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from tests.e2e.command_line import gpushare
from tests.e2e.fixtures import WORKERS, await_agreement, minor_of
from tests.e2e.holdings import holdings
from tests.e2e.observe import PODS, POLICIES, get, watch_until
from tests.e2e.outcomes import await_outcomes, is_active, is_running, summary
from tests.e2e.product import SYSTEM, Product, named, policy
from tests.e2e.test_dedicated import (
    MANIFESTS,
    OURS,
    asking_ours,
    await_running,
    condition,
    deployments,
    leader,
    points_pods,
    why_waiting,
    with_scheduler,
)
from tests.e2e.traces import traces
from tests.e2e.workloads import create, pod, replica_set

from gpushare_core.kube import paths
from gpushare_core.kubernetes_minors import ENGINE_RANGE, engine_minor
from gpushare_core.process.version import VERSION
from gpushare_core.text.json_object import Json
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.waiting import wait_until

pytestmark = pytest.mark.e2e

CARDS = [16] * 6
"""Three nodes of two cards."""
REPLICAS = {1: 8, 3: 8, 5: 8, 7: 8}
"""Units -> pods: 128 units, of 96."""


@pytest.fixture
def rights(cluster: LocalCluster, product: Product) -> Iterator[None]:
    """What an administrator installs besides, for this backend."""
    del product
    manifests = MANIFESTS if points_pods(cluster) else f"{MANIFESTS}/scheduler"
    cluster.kubectl("apply", "-k", manifests)
    yield
    cluster.kubectl("delete", "gpusharepolicy", "--all", "--timeout=240s")
    cluster.kubectl("delete", "-k", manifests)


def asking(engine: str) -> Json:
    body = policy("default", nodes=WORKERS, cards=2)
    body["spec"]["scheduler"] = {"backend": "Dedicated", **({"engine": engine} if engine else {})}
    return body


def await_engine(cluster: LocalCluster, product: Product, engine: str) -> None:
    """Wait until that engine places pods."""
    watch_until(
        cluster,
        POLICIES,
        lambda found: any(each.get("status", {}).get("engine") == engine for each in found),
        what=f"engine {engine} places pods",
        seconds=240,
        describe=lambda found: [each.get("status") for each in found],
    )
    product.await_ready("default")


def containers(cluster: LocalCluster) -> list[tuple[str, str]]:
    """Name and image of each container of the second kube-scheduler, as its Deployment has them."""
    deployment = get(cluster, paths.deployment_path(SYSTEM, OURS))
    found = deployment["spec"]["template"]["spec"]["containers"]
    return [(container["name"], container["image"]) for container in found]


def our_image(cluster: LocalCluster) -> str:
    return f"{OURS}:{VERSION}-{engine_minor(minor_of(cluster))}"


def bound_by(cluster: LocalCluster, namespace: str) -> dict[str, str]:
    """Pod -> what bound it, by its Event. A scheduler that ends may take Events with it."""
    events = get(cluster, f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")["items"]
    found = [
        (each["regarding"]["name"], each["reportingController"])
        for each in events
        if each["reason"] == "Scheduled"
    ]
    assert len(found) == len(dict(found)), "a pod was bound twice"
    return dict(found)


def await_bound_by(cluster: LocalCluster, namespace: str, expected: dict[str, str]) -> None:
    wait_until(
        f"Events say who bound {', '.join(expected)}",
        lambda: bound_by(cluster, namespace) == expected,
        explain=lambda: str(bound_by(cluster, namespace)),
    )


def allocations(pods: Sequence[Json]) -> dict[str, Any]:
    """Pod -> its annotation; of pods that are bound."""
    return {
        each["metadata"]["name"]: json.loads(each["metadata"]["annotations"]["gpushare.io/allocation"])
        for each in pods
        if each["spec"].get("nodeName")
    }


def report(cluster: LocalCluster, *command: str) -> Any:
    return json.loads(gpushare(cluster, *command, "-o", "json").stdout)


@pytest.mark.usefixtures("rights", "has_engine")
def test_the_plugin_binds_pods_with_their_cards_and_leaves_nothing_behind(
    cluster: LocalCluster, product: Product, namespace: str
) -> None:
    before = traces(cluster)
    product.apply(asking(""))
    ready = product.await_ready("default")
    assert (ready["status"]["backend"], ready["status"]["engine"]) == ("Dedicated", "Plugin")
    assert (
        f"{OURS} ({our_image(cluster)}, engine Plugin) places pods"
        in condition(cluster, "SchedulerConfigured")["message"]
    )
    assert containers(cluster) == [("kube-scheduler", our_image(cluster))]

    bodies = [asking_ours(cluster, f"p{units}", units) for units in (16, 9, 7, 3)]
    create(cluster, namespace, [*bodies, asking_ours(cluster, "never", 17)])
    pods = await_running(cluster, namespace, "p16", "p9", "p7", "p3")
    given = allocations([*pods.values()])
    for name, allocation in given.items():
        seen = pods[name]
        assert (allocation["node"], allocation["uid"]) == (seen["spec"]["nodeName"], seen["metadata"]["uid"])
        assert sum(allocation["cards"].values()) == int(name.removeprefix("p"))
    await_bound_by(cluster, namespace, dict.fromkeys(given, OURS))
    await_agreement(cluster, namespace)

    found = watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda items: any(why_waiting(each) for each in items if named(each, "never")),
        what="never is refused",
        describe=lambda items: [each["status"] for each in items],
    )
    (refused,) = [why_waiting(each) for each in found if named(each, "never")]
    assert "insufficient GPU memory in one card: asked 17, largest free 16" in refused
    check_the_command_line(cluster, namespace)
    assert refused_requests(cluster) == []

    cluster.kubectl("delete", "pods", "--all", "-n", namespace)
    product.delete("default")
    assert deployments(cluster) == ["gpushare-operator"]
    assert traces(cluster) == before
    left = [entry for entry in report(cluster, "audit", "--residue")["residue"] if not entry["passes"]]
    assert left == []


def refused_requests(cluster: LocalCluster) -> list[str]:
    """What the second kube-scheduler's pods log of requests that their account may not make."""
    # The second replica may still be starting, and a former one ending.
    cluster.kubectl("rollout", "status", "-n", SYSTEM, "deployment/gpushare-scheduler", "--timeout=240s")
    pods = ("-n", SYSTEM, "-l", "app.kubernetes.io/component=scheduler")
    lines = cluster.kubectl("logs", *pods, "--all-containers", "--tail=-1", "--ignore-errors").splitlines()
    assert lines
    return [line for line in lines if "forbidden: User" in line]


def problems(cluster: LocalCluster) -> list[Json]:
    return [each for each in report(cluster, "status")["problems"] if each["severity"] != "note"]


def check_the_command_line(cluster: LocalCluster, namespace: str) -> None:
    """It knows the engine, and misses no extender."""
    status = report(cluster, "status")
    (seen,) = status["policies"]
    assert (seen["backend"], seen["engine"]) == ("Dedicated", "Plugin")
    assert status["programs"], "the versions that run"
    assert {"operator", "plugin", "scheduler"} <= {row["program"] for row in status["programs"]}
    assert "extender" not in {row["program"] for row in status["programs"]}
    wait_until(
        "no problem is left",
        lambda: problems(cluster) == [],
        explain=lambda: str(problems(cluster)),
    )
    for pod_name in ("p9", "never"):
        assert "xtender" not in gpushare(cluster, "why", pod_name, "-n", namespace).stdout
    assert "the extender's ledger" not in gpushare(cluster, "audit").stdout


@pytest.mark.usefixtures("rights", "has_engine")
def test_a_change_of_engine_moves_no_pod_and_binds_none_twice(
    cluster: LocalCluster, product: Product, namespace: str
) -> None:
    """Pods come all the time: before each change, right after it, and when it is done."""
    product.apply(asking("Plugin"))
    await_engine(cluster, product, "Plugin")
    made: list[str] = []

    def add(*names: str) -> None:
        made.extend(names)
        create(cluster, namespace, [asking_ours(cluster, name, 3) for name in names])

    add("first-1", "first-2")
    await_running(cluster, namespace, *made)
    for number, engine in enumerate(("Extender", "Plugin")):
        before = holdings(cluster, namespace)
        add(f"before-{number}-1", f"before-{number}-2")
        product.apply(asking(engine))
        add(f"during-{number}-1", f"during-{number}-2")
        await_engine(cluster, product, engine)
        add(f"after-{number}")
        await_running(cluster, namespace, *made)
        now = holdings(cluster, namespace)
        assert {name: now[name] for name in before} == before
        assert len(containers(cluster)) == (1 if engine == "Plugin" else 2)
        assert refused_requests(cluster) == []
        await_agreement(cluster, namespace)
    assert bound_by(cluster, namespace).items() <= dict.fromkeys(made, OURS).items()
    product.delete("default")
    assert deployments(cluster) == ["gpushare-operator"]


@pytest.mark.usefixtures("rights", "has_engine", "books_agree")
def test_a_leader_that_is_killed_in_the_middle_of_a_burst_loses_and_doubles_nothing(
    cluster: LocalCluster, product: Product, namespace: str
) -> None:
    product.apply(asking("Plugin"))
    await_engine(cluster, product, "Plugin")
    sets = [
        of_ours(replica_set(f"p{units}", units=units, replicas=count)) for units, count in REPLICAS.items()
    ]
    create(cluster, namespace, sets)
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: sum(is_active(each) and is_running(each) for each in pods) >= 6,
        what="6 pods run",
        describe=summary,
    )
    cluster.kill_container(namespace=SYSTEM, pod=leader(cluster), container="kube-scheduler")
    pods = await_outcomes(cluster, namespace, pods=sum(REPLICAS.values()), capacity=CARDS)
    assert sum(map(is_running, pods)) < len(pods)
    bound_by(cluster, namespace)


def of_ours(controller: Json) -> Json:
    """With pods that name our scheduler, whatever points them at it."""
    template = controller["spec"]["template"]
    named_scheduler = with_scheduler(template, OURS)
    return {**controller, "spec": {**controller["spec"], "template": named_scheduler}}


@pytest.mark.usefixtures("rights")
def test_where_there_is_no_plugin_for_the_server_the_extender_serves_and_the_condition_says_why(
    cluster: LocalCluster, product: Product, namespace: str
) -> None:
    if engine_minor(minor_of(cluster)):
        pytest.skip(f"{cluster.kubernetes.name} has engine Plugin; make matrix runs those that have none")
    product.apply(asking("Plugin"))
    ready = product.await_ready("default")
    assert ready["status"]["engine"] == "Extender"
    said = condition(cluster, "SchedulerConfigured")["message"]
    assert "engine Extender is used in place of Plugin" in said
    assert f"for Kubernetes {ENGINE_RANGE}, and none for API servers of {cluster.kubernetes.name}" in said
    assert [name for name, _ in containers(cluster)] == ["kube-scheduler", "extender"]
    (note,) = [each for each in report(cluster, "status")["problems"] if each["reason"] == "EngineFallback"]
    assert note["severity"] == "note"
    create(cluster, namespace, [asking_ours(cluster, "runs", 4)])
    await_running(cluster, namespace, "runs")
    await_bound_by(cluster, namespace, {"runs": OURS})
    product.delete("default")


@pytest.mark.usefixtures("rights", "has_engine")
def test_ordinary_pods_are_none_of_its_business(
    cluster: LocalCluster, product: Product, namespace: str
) -> None:
    product.apply(asking("Plugin"))
    await_engine(cluster, product, "Plugin")
    create(
        cluster, namespace, [pod("ordinary", {"main": 0}), with_scheduler(pod("named", {"main": 0}), OURS)]
    )
    pods = await_running(cluster, namespace, "ordinary", "named")
    await_bound_by(cluster, namespace, {"ordinary": "default-scheduler", "named": OURS})
    annotated = [name for name, each in pods.items() if "annotations" in each["metadata"]]
    assert [
        name for name in annotated if "gpushare.io/allocation" in pods[name]["metadata"]["annotations"]
    ] == []
    product.delete("default")
