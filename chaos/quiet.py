"""Whether the cluster is quiet: all programs serve, and no pod is starting or ending."""

import asyncio
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from chaos.plan.known import CONTROL_PLANES, WORKERS
from chaos.policies import POLICIES as BASE_POLICIES
from chaos.world import NAMESPACE, SYSTEM, VERSION, World
from gpushare_core.audit.readers import read_pod
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.paths import NODES, POLICIES, daemon_sets, deployments, pods
from gpushare_core.text.json_object import Json
from gpushare_localcluster.containers import ContainerRecord
from gpushare_localcluster.errors import LocalClusterError

INTERVAL = 0.25
SINK = "sink"
REJECTED_AFTER = 10.0
"""Seconds until a static pod appears: its kubelet looks for files every second."""
REPLACEMENT_REJECTED_AFTER = 25.0
"""The same while an earlier pod of the name is shown, which the kubelet replaces after 10 to 15 s."""
MIRROR_ANNOTATION = "kubernetes.io/config.mirror"


class NotQuietError(Exception):
    """It does not become quiet in time; the text says what is missing."""


@dataclass(frozen=True, slots=True)
class Quiet:
    """``seconds``: how long it took; ``at_once``: whether the cluster was quiet at the first look."""

    seconds: float
    at_once: bool = False
    placed: frozenset[str] = frozenset()
    """UIDs of the pods on nodes: a pod that came or went between two looks was not at rest."""


async def await_quiet(world: World, *, seconds: float) -> Quiet:
    """Raises ``NotQuietError`` after ``seconds``."""
    begun, at_once = time.monotonic(), True
    while True:
        missing, placed = await _look(world)
        if not missing:
            return Quiet(time.monotonic() - begun, at_once, placed)
        at_once = False
        if time.monotonic() - begun > seconds:
            raise NotQuietError(f"not quiet after {seconds:g} s: {'; '.join(missing[:8])}")
        await asyncio.sleep(INTERVAL)


async def _look(world: World) -> tuple[list[str], frozenset[str]]:
    """Returns what is missing for quiet, and the pods on nodes. Containers are looked at last, and only where
    nothing else is missing, because that costs most."""
    paths = (NODES, daemon_sets(SYSTEM), deployments(SYSTEM), pods("kube-system"), POLICIES, pods(NAMESPACE))
    try:
        answers = await asyncio.gather(*(world.client.get(path) for path in paths))
    except (ApiError, UnreachableError) as error:
        return [f"the API server does not answer: {error}"], frozenset()
    nodes, sets, deployed, schedulers, policies, ours = (answer["items"] for answer in answers)
    missing = [
        *absent(nodes=nodes, system_pods=schedulers, policies=policies),
        *(
            f"node {_name(node)} is not Ready"
            for node in nodes
            if not _is_sink(node) and not is_true(node, "Ready")
        ),
        *(
            f"DaemonSet {_name(daemon_set)} is not whole"
            for daemon_set in sets
            if not _is_whole_set(daemon_set)
        ),
        *(
            f"Deployment {_name(deployment)} is not whole"
            for deployment in deployed
            if not _is_whole_deployment(deployment)
        ),
        *(f"{_name(scheduler)} is not Ready" for scheduler in schedulers if not is_true(scheduler, "Ready")),
        *(f"policy {_name(policy)}: {_why(policy)}" for policy in policies if not is_settled(policy)),
        *(f"not open again: {broken_watch}" for broken_watch in await world.api_proxy.broken_watches()),
        *on_their_way(ours),
        *unmirrored(world.static_pods, ours, now=time.time_ns()),
    ]
    placed = frozenset(pod["metadata"]["uid"] for pod in ours if pod["spec"].get("nodeName"))
    try:
        return missing or abandoned(await world.thread(world.cluster.containers), ours), placed
    except LocalClusterError as error:
        return [f"the local cluster does not answer: {error}"], placed


def absent(*, nodes: Iterable[Json], system_pods: Iterable[Json], policies: Iterable[Json]) -> list[str]:
    """Returns programs and objects that have to exist in quiet and do not: without them nothing can be
    wrong."""
    schedulers = (f"kube-scheduler-{node}" for node in CONTROL_PLANES)
    wanted = (
        ("node", (*CONTROL_PLANES, *WORKERS), nodes),
        ("pod", schedulers, system_pods),
        ("policy", (_name(policy) for policy in BASE_POLICIES), policies),
    )
    return [
        f"{what} {name} is not there"
        for what, names, items in wanted
        for name in sorted(set(names) - {_name(item) for item in items})
    ]


def abandoned(containers: Iterable[ContainerRecord], pods: Iterable[Json]) -> list[str]:
    """Returns containers that run although the API server no longer has their pods. They are ending; no book
    has them, so nothing else would show that they still see their cards."""
    known = {read_pod(pod).kubelet_uid for pod in pods}
    return [
        f"container {container.container} of {container.pod} runs on {container.node}, and its pod is gone"
        for container in containers
        if container.namespace == NAMESPACE
        and container.state == "running"
        and container.pod_uid not in known
    ]


def on_their_way(pods: Iterable[Json]) -> list[str]:
    """Returns what the pods do that neither rest nor wait for room."""
    return [f"pod {_name(pod)} {doing}" for pod in pods if (doing := _doing(pod))]


def unmirrored(written: Mapping[str, str], pods: Iterable[Json], *, now: int) -> list[str]:
    """Returns the static pods of which the API server shows nothing yet, an earlier pod, or a deleted one.

    Their kubelet starts and ends them without asking. A pod that it rejects it never shows, and what it shows
    of an earlier one stays. ``now``: in nanoseconds, as ``VERSION``.
    """
    shown = {
        _name(pod): _annotations(pod).get(VERSION) for pod in pods if MIRROR_ANNOTATION in _annotations(pod)
    }
    differing = (name for name in written.keys() | shown.keys() if written.get(name) != shown.get(name))
    return [
        f"static pod {name} is on its way"
        for name in sorted(differing)
        if name not in written
        or now - int(written[name])
        < (REPLACEMENT_REJECTED_AFTER if name in shown else REJECTED_AFTER) * 10**9
    ]


def _annotations(pod: Json) -> Json:
    annotations: Json = pod["metadata"].get("annotations") or {}
    return annotations


def _doing(pod: Json) -> str:
    status = pod.get("status", {})
    if "deletionTimestamp" in pod["metadata"]:
        return "ends"
    if status.get("phase") in ("Failed", "Succeeded"):
        return ""
    if not pod["spec"].get("nodeName"):
        return _waiting(condition(pod, "PodScheduled"))
    if status.get("phase") == "Running":
        return "" if pod["spec"]["restartPolicy"] == "Always" else "is about to end"
    return f"starts on {pod['spec']['nodeName']}"


def _waiting(scheduled: Json) -> str:
    """Returns what a pod without a node does; "" when it waits for room. After any other failure
    kube-scheduler tries it again: nobody may know yet whether it was bound, and until then its units are
    kept.

    Source: ``handleSchedulingFailure`` of kube-scheduler.
    """
    if scheduled.get("status") != "False":
        return "waits for the scheduler"
    return "is tried again" if scheduled.get("reason") == "SchedulerError" else ""


def condition(item: Json, kind: str) -> Json:
    """The condition of that type, or an empty one."""
    conditions: list[Json] = item.get("status", {}).get("conditions") or []
    return next((condition for condition in conditions if condition["type"] == kind), {})


def is_true(item: Json, kind: str) -> bool:
    return condition(item, kind).get("status") == "True"


def _name(item: Json) -> str:
    return str(item["metadata"]["name"])


def _is_sink(node: Json) -> bool:
    return _name(node) == SINK


def _is_whole_set(item: Json) -> bool:
    status = item.get("status", {})
    wanted = status.get("desiredNumberScheduled")
    is_observed = status.get("observedGeneration") == item["metadata"]["generation"]
    is_updated = status.get("updatedNumberScheduled", 0) == wanted
    return bool(is_observed and is_updated and status.get("numberReady") == wanted)


def _is_whole_deployment(item: Json) -> bool:
    return bool(item.get("status", {}).get("readyReplicas", 0) == item["spec"]["replicas"])


def is_settled(policy: Json) -> bool:
    """Ready, or not for a reason that lies in what was asked for."""
    if policy.get("status", {}).get("observedGeneration") != policy["metadata"]["generation"]:
        return False
    kinds = ("Ready", "Conflicted", "UnitChangeBlocked")
    is_asked_so = condition(policy, "Ready").get("reason") in (
        "NoNodesSelected",
        "NodesMissing",
        "UnitTooFine",
    )
    return is_asked_so or any(is_true(policy, kind) for kind in kinds)


def _why(policy: Json) -> str:
    ready = condition(policy, "Ready")
    return f"{ready.get('reason', 'not seen yet')}: {ready.get('message', '')}"
