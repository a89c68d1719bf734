"""Pods of higher priority get a card: real PriorityClasses, the real scheduler, the Eviction API."""

import json
import time
from collections.abc import Iterator, Sequence

import pytest
from tests.e2e.books import Key, read_books
from tests.e2e.kubernetes_features import NOMINATION_ENDS, is_on
from tests.e2e.observe import PODS, Json, condition, get, watch_until
from tests.e2e.outcomes import is_active, is_refused, is_running, summary
from tests.e2e.product import Product, policy
from tests.e2e.workloads import MEMORY, SLICE, create, pod, replica_set

from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.connected, pytest.mark.usefixtures("two_cards", "priorities")]

NODE, SLICES_NODE = "gpu-1", "gpu-2"
LOW, MIDDLE, HIGH, NEVER = "gs-low", "gs-middle", "gs-high", "gs-never"
PRIORITIES = {LOW: 1, MIDDLE: 100, HIGH: 1000, NEVER: 1000}
STUBBORN = "trap '' TERM; while :; do sleep 1; done"


def two_cards_policy(*, preemption: str = "Enabled") -> Json:
    body = policy("default", nodes=[NODE], cards=2)
    slices = policy("default", nodes=[SLICES_NODE], cards=3, mode="Slices", slicesPerCard=2)
    body["spec"]["nodes"] += slices["spec"]["nodes"]
    body["spec"]["placement"] = {"preemption": preemption}
    return body


@pytest.fixture(scope="module")
def two_cards(product: Product) -> Iterator[None]:
    """One node with two cards of 16 units, and one with three cards of two slices."""
    with product.in_force(two_cards_policy()):
        yield


@pytest.fixture(scope="module")
def priorities(cluster: LocalCluster) -> Iterator[None]:
    for name, value in PRIORITIES.items():
        body = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "preemptionPolicy": "Never" if name == NEVER else "PreemptLowerPriority",
        }
        cluster.kubectl("create", "-f", "-", stdin=json.dumps(body))
    yield
    cluster.kubectl("delete", "priorityclass", *PRIORITIES)


def important(name: str, amount: int, priority: str, *, grace: int = 1, resource: str = MEMORY) -> Json:
    command = STUBBORN if grace > 1 else "exec sleep infinity"
    body = pod(name, {"main": amount}, command=command, resource=resource)
    body["spec"].update(priorityClassName=priority, terminationGracePeriodSeconds=grace)
    return body


def await_pods(cluster: LocalCluster, namespace: str, *running: str) -> None:
    """Wait until exactly these pods run, besides those that wait or end."""

    def so(pods: Sequence[Json]) -> bool:
        active = (pod for pod in pods if is_active(pod) and is_running(pod))
        return sorted(pod["metadata"]["name"] for pod in active) == sorted(running)

    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        so,
        what=f"{', '.join(running)} run",
        describe=lambda pods: ([pod["metadata"]["name"] for pod in pods], summary(pods)),
    )


def run(cluster: LocalCluster, namespace: str, *bodies: Json) -> None:
    """One after the other, so that it is known which card each gets."""
    names: list[str] = []
    for body in bodies:
        create(cluster, namespace, [body])
        names.append(body["metadata"]["name"])
        await_pods(cluster, namespace, *names)


def await_refused(cluster: LocalCluster, namespace: str, name: str) -> None:
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: any(pod["metadata"]["name"] == name and is_refused(pod) for pod in pods),
        what=f"{name} is refused",
        describe=summary,
    )


def await_event(cluster: LocalCluster, namespace: str, reason: str, name: str) -> str:
    """The note of the Event on the pod."""

    def concerns(event: Json) -> bool:
        return bool(event["reason"] == reason and event["regarding"]["name"] == name)

    events = watch_until(
        cluster,
        f"/apis/events.k8s.io/v1/namespaces/{namespace}/events",
        lambda seen: any(map(concerns, seen)),
        what=f"an Event {reason} on {name}",
        describe=lambda seen: [(event["reason"], event["regarding"]["name"]) for event in seen],
    )
    return str(next(event["note"] for event in events if concerns(event)))


def stays_waiting(cluster: LocalCluster, namespace: str, name: str, *, seconds: float = 8.0) -> None:
    """Nobody is evicted, and the pod is not bound, for so long: the extender looks within a second."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pods = get(cluster, PODS.format(namespace=namespace))["items"]
        assert all(is_active(pod) for pod in pods), summary(pods)
        assert not any(pod["metadata"]["name"] == name and pod["spec"].get("nodeName") for pod in pods)


def two_thirds_each(cluster: LocalCluster, namespace: str) -> None:
    """Two pods of 10 units on two cards: 12 are free, 6 on each."""
    run(cluster, namespace, important("middle", 10, MIDDLE), important("low", 10, LOW))


@pytest.mark.usefixtures("books_agree")
def test_the_lowest_pod_is_evicted_where_the_sum_fits_and_no_card_does(
    cluster: LocalCluster, namespace: str
) -> None:
    two_thirds_each(cluster, namespace)
    create(cluster, namespace, [important("high", 10, HIGH)])
    await_pods(cluster, namespace, "middle", "high")
    uid = get(cluster, f"{PODS.format(namespace=namespace)}/high")["metadata"]["uid"]
    assert f"Preempted by pod {uid} on node {NODE}" in await_event(cluster, namespace, "Preempted", "low")
    assert f"evicted {namespace}/low" in await_event(cluster, namespace, "Preempting", "high")


@pytest.mark.usefixtures("books_agree")
def test_where_not_even_the_sum_fits_two_pods_of_one_card_go(cluster: LocalCluster, namespace: str) -> None:
    """kube-scheduler preempts; the preempt verb sees to it that its victims are of one card."""
    halves = [important(f"half-{number}", 8, LOW) for number in range(4)]
    run(cluster, namespace, *halves)
    create(cluster, namespace, [important("high", 16, HIGH)])
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: any(pod["metadata"]["name"] == "high" and is_running(pod) for pod in pods),
        what="high runs",
        describe=summary,
    )
    pods = get(cluster, PODS.format(namespace=namespace))["items"]
    left = [pod["metadata"]["name"] for pod in pods if is_active(pod)]
    assert sorted(left) in (["half-0", "half-1", "high"], ["half-2", "half-3", "high"]), summary(pods)


@pytest.mark.usefixtures("books_agree")
def test_slices_are_freed_on_as_many_cards_as_are_missing(cluster: LocalCluster, namespace: str) -> None:
    """Two slices of one card are taken: four are free, on two cards."""
    lows = [important(name, 1, LOW, resource=SLICE) for name in ("first", "second")]
    run(cluster, namespace, *lows)
    create(cluster, namespace, [important("high", 3, HIGH, resource=SLICE)])
    await_event(cluster, namespace, "Preempting", "high")
    pods = watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda seen: any(pod["metadata"]["name"] == "high" and is_running(pod) for pod in seen),
        what="high runs",
        describe=summary,
    )
    assert sum(is_active(pod) for pod in pods) == 2


def test_a_protected_pod_stays_and_the_next_one_goes(cluster: LocalCluster, namespace: str) -> None:
    two_thirds_each(cluster, namespace)
    protect(cluster, namespace, "low")
    create(cluster, namespace, [important("high", 10, HIGH)])
    await_pods(cluster, namespace, "low", "high")


def test_where_all_are_protected_the_pod_waits_and_is_told_why(cluster: LocalCluster, namespace: str) -> None:
    two_thirds_each(cluster, namespace)
    protect(cluster, namespace, "low", "middle")
    create(cluster, namespace, [important("high", 10, HIGH)])
    assert "PodDisruptionBudget" in await_event(cluster, namespace, "PreemptionRefused", "high")
    await_pods(cluster, namespace, "low", "middle")
    cluster.kubectl("delete", "poddisruptionbudget", "--all", "-n", namespace)
    await_pods(cluster, namespace, "middle", "high")


def protect(cluster: LocalCluster, namespace: str, *names: str) -> None:
    """None of the pods may be evicted."""
    for name in names:
        cluster.kubectl("label", "pod", name, f"protected={name}", "-n", namespace)
        body = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"protected": name}}},
        }
        cluster.kubectl("create", "-n", namespace, "-f", "-", stdin=json.dumps(body))
    watch_until(
        cluster,
        f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets",
        lambda budgets: (
            sum(budget.get("status", {}).get("currentHealthy", 0) for budget in budgets) == len(names)
        ),
        what="the budgets know their pods",
    )


@pytest.mark.usefixtures("books_agree")
def test_one_that_is_nominated_in_vain_keeps_nobody_from_the_node(
    cluster: LocalCluster, namespace: str
) -> None:
    """What its victims left was taken: 12 units are free, 6 on each card, and nobody may be evicted. While
    kube-scheduler counts 10 of them for ``high``, 2 are left for ``small``."""
    if not is_on(NOMINATION_ENDS, cluster.kubernetes):
        pytest.skip(
            f"kube-scheduler {cluster.kubernetes.name} may not notice for five minutes that a nomination ends"
        )
    two_thirds_each(cluster, namespace)
    protect(cluster, namespace, "low", "middle")
    create(cluster, namespace, [important("high", 10, HIGH)])
    await_event(cluster, namespace, "PreemptionRefused", "high")
    nominate(cluster, namespace, "high")
    create(cluster, namespace, [important("small", 3, LOW)])
    await_tried(cluster, namespace, "small")
    try_again(cluster)
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: is_running(of_name(pods, "small")) and not nominated(of_name(pods, "high")),
        what="small runs, and high is not nominated any more",
        describe=lambda pods: (summary(pods), nominated(of_name(pods, "high"))),
    )
    cluster.kubectl("delete", "poddisruptionbudget", "--all", "-n", namespace)
    await_pods(cluster, namespace, "middle", "small", "high")


def of_name(pods: Sequence[Json], name: str) -> Json:
    return next(pod for pod in pods if pod["metadata"]["name"] == name)


def nominated(pod: Json) -> str:
    return str(pod["status"].get("nominatedNodeName", ""))


def await_tried(cluster: LocalCluster, namespace: str, name: str) -> None:
    """Whatever came of it: kube-scheduler knows all by then that was written of pods before this one."""
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: bool(condition(of_name(pods, name), "PodScheduled")),
        what=f"kube-scheduler has tried {name}",
        describe=summary,
    )


def nominate(cluster: LocalCluster, namespace: str, name: str) -> None:
    """As kube-scheduler does when it has evicted others for a pod."""
    patch = json.dumps({"status": {"nominatedNodeName": NODE}})
    cluster.kubectl(
        "patch", "pod", name, "-n", namespace, "--subresource=status", "--type=merge", "-p", patch
    )


def try_again(cluster: LocalCluster) -> None:
    """kube-scheduler tries pods that an extender refused again at any change of a node."""
    cluster.kubectl("label", "node", NODE, f"tried-again={time.monotonic_ns()}", "--overwrite")


def test_a_pod_that_never_preempts_waits(cluster: LocalCluster, namespace: str) -> None:
    two_thirds_each(cluster, namespace)
    create(cluster, namespace, [important("never", 10, NEVER)])
    await_refused(cluster, namespace, "never")
    stays_waiting(cluster, namespace, "never")


def test_where_the_policy_says_so_nobody_is_evicted(
    cluster: LocalCluster, product: Product, namespace: str
) -> None:
    product.apply(two_cards_policy(preemption="Disabled"))
    product.await_ready("default")
    two_thirds_each(cluster, namespace)
    create(cluster, namespace, [important("high", 10, HIGH)])
    await_refused(cluster, namespace, "high")
    stays_waiting(cluster, namespace, "high")
    product.apply(two_cards_policy())
    await_pods(cluster, namespace, "middle", "high")


@pytest.mark.usefixtures("books_agree")
def test_a_card_that_is_being_freed_is_not_given_to_small_pods(cluster: LocalCluster, namespace: str) -> None:
    """One victim is gone at once, the other takes its time: between them there is room for small pods."""
    victims = [important("quick", 5, LOW), important("slow", 5, LOW, grace=12)]
    run(cluster, namespace, important("filler", 16, LOW), *victims)
    cluster.kubectl("delete", "pod", "filler", "-n", namespace)
    await_pods(cluster, namespace, "quick", "slow")
    create(cluster, namespace, [important("middle", 7, MIDDLE)])
    await_pods(cluster, namespace, "quick", "slow", "middle")
    create(cluster, namespace, [important("high", 12, HIGH)])
    await_event(cluster, namespace, "Preempted", "quick")
    create(cluster, namespace, [important(f"small-{number}", 4, LOW) for number in range(6)])
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: any(pod["metadata"]["name"] == "high" and is_running(pod) for pod in pods),
        what="high runs",
        describe=summary,
    )
    books = read_books(cluster, namespace)
    cards = {name: books.environment[Key(namespace, name, "main")].cards for name in ("high", "middle")}
    assert cards["high"] != cards["middle"]


@pytest.mark.usefixtures("books_agree")
@pytest.mark.parametrize("attempt", range(3))
def test_one_eviction_is_enough_though_the_victim_is_replaced_at_once(
    cluster: LocalCluster, namespace: str, attempt: int
) -> None:
    """Victims that end at once are gone before the plugin tells that their units are free."""
    batch = replica_set("batch", units=16, replicas=2)
    template = batch["spec"]["template"]["spec"]
    template["nodeSelector"] = {"kubernetes.io/hostname": NODE}
    template["containers"][0]["command"] = ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.05; done"]
    create(cluster, namespace, [batch])
    everything = PODS.format(namespace=namespace)
    watch_until(
        cluster,
        everything,
        lambda pods: sum(map(is_running, pods)) == 2,
        what="two pods fill the node",
        describe=summary,
    )
    before = {item["metadata"]["uid"] for item in get(cluster, everything)["items"]}
    high = important(f"high-{attempt}", 1, HIGH)
    high["spec"]["nodeSelector"] = template["nodeSelector"]
    create(cluster, namespace, [high])
    watch_until(
        cluster,
        everything,
        lambda pods: any(pod["metadata"]["name"] == f"high-{attempt}" and is_running(pod) for pod in pods),
        what="high runs",
        describe=summary,
    )
    wait_until("an Event tells of the victim", lambda: preempted_uids(cluster, namespace))
    evicted = preempted_uids(cluster, namespace)
    assert len(evicted) == 1, "one victim is enough"
    assert evicted < before, "no replacement is a victim"


def preempted_uids(cluster: LocalCluster, namespace: str) -> set[str]:
    """Returns the UIDs of the pods on which an Event says that they were preempted."""
    seen = get(cluster, f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")["items"]
    return {event["regarding"]["uid"] for event in seen if event["reason"] == "Preempted"}
