"""Which pods of a card are evicted, and where those would land that are made in their place."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from gpushare_cli.decide.drain.cordon_report import CardTenant
from gpushare_cli.decide.drain.drain_report import DrainAction, DrainedPod
from gpushare_cli.decide.objects.pod_status import status_of
from gpushare_cli.decide.scheduling.written_pod import written_pod
from gpushare_cli.decide.simulation.node_room import used_without
from gpushare_cli.decide.simulation.redivision import readable_share_node, with_cordoned, without_pods
from gpushare_cli.decide.simulation.simulation import (
    SimulatedCluster,
    SimulationQuestion,
    controller_of,
    simulate,
    stays,
)
from gpushare_cli.decide.simulation.simulation_report import SimulatedPlacement
from gpushare_core.scheduling.preemption.bound_pods import BoundPod, OwnedPod, PodList
from gpushare_core.scheduling.preemption.disruption_budgets import Budget
from gpushare_core.text.json_object import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainSubject:
    """The cards, and all that was read about their pods."""

    node: str
    uuids: Collection[str]
    """Of the cards."""
    tenants: Sequence[CardTenant]
    pods: Sequence[Json]
    """Those of the node that the API server has, whole."""
    budgets: Sequence[Budget]
    is_forced: bool
    """Whether pods without a controller are evicted, too."""


def drain_plan(subject: DrainSubject, cluster: SimulatedCluster) -> list[DrainedPod]:
    """Returns what becomes of each pod on the cards, by name."""
    by_uid = {pod["metadata"]["uid"]: pod for pod in subject.pods}
    planned = [_planned(tenant, by_uid.get(tenant.uid), subject) for tenant in subject.tenants]
    moving = [by_uid[pod.uid] for pod in planned if pod.action is DrainAction.EVICT and pod.controller]
    leaving = {pod.uid for pod in planned if pod.action in (DrainAction.EVICT, DrainAction.ENDING)}
    places = _replacements(subject, cluster, moving, leaving)
    return [msgspec.structs.replace(pod, replacement=places.get(pod.uid)) for pod in planned]


def came(tenant: CardTenant) -> DrainedPod:
    """Returns a pod that the plan does not have."""
    return DrainedPod(
        namespace=tenant.namespace,
        name=tenant.name,
        uid=tenant.uid,
        units=tenant.units,
        controller="",
        action=DrainAction.UNKNOWN if tenant.orphaned else DrainAction.CAME,
    )


def _planned(tenant: CardTenant, pod: Json | None, subject: DrainSubject) -> DrainedPod:
    action = _action(pod, is_forced=subject.is_forced)
    return DrainedPod(
        namespace=tenant.namespace,
        name=tenant.name,
        uid=tenant.uid,
        units=tenant.units,
        controller=_controller(pod) if pod else "",
        action=action,
        has_local_data=pod is not None and _has_local_data(pod),
        budget=protecting_budget(pod, subject.budgets) if pod and action is DrainAction.EVICT else "",
    )


def _action(pod: Json | None, *, is_forced: bool) -> DrainAction:
    if pod is None:
        return DrainAction.UNKNOWN
    if pod["metadata"].get("deletionTimestamp") or status_of(pod).has_ended:
        return DrainAction.ENDING
    if stays(pod):
        return DrainAction.STAYS
    return DrainAction.EVICT if controller_of(pod) or is_forced else DrainAction.NEEDS_FORCE


def _controller(pod: Json) -> str:
    owners = pod["metadata"].get("ownerReferences") or ()
    return next(
        (f"{owner.get('kind')} {owner.get('name')}" for owner in owners if owner.get("controller")), ""
    )


def _has_local_data(pod: Json) -> bool:
    volumes = (pod.get("spec") or {}).get("volumes")
    each = volumes if isinstance(volumes, list) else ()
    return any(isinstance(volume, dict) and "emptyDir" in volume for volume in each)


def protecting_budget(pod: Json, budgets: Iterable[Budget]) -> str:
    """Returns the name of a budget that does not let the pod go at present; empty where none does."""
    bound = bound_pod(pod)
    protecting = (budget for budget in budgets if bound and budget.counts(bound))
    return next((budget.metadata.name for budget in protecting if budget.status.disruptions_allowed <= 0), "")


def bound_pod(pod: Json) -> BoundPod | None:
    """Returns None for what cannot be read."""
    try:
        return PodList([msgspec.convert(pod, OwnedPod)]).pods()[0]
    except msgspec.ValidationError:
        return None


def _replacements(
    subject: DrainSubject, cluster: SimulatedCluster, moving: Sequence[Json], leaving: Collection[str]
) -> Mapping[str, SimulatedPlacement]:
    """Returns UID of a pod -> where the one in its place would land, with the cards closed and all of
    ``leaving`` gone."""
    specs = [written_pod(pod).spec for pod in moving]
    after = replace(
        cluster,
        share_nodes=[_left(raw, subject, leaving) for raw in cluster.share_nodes],
        booked=[update for update in cluster.booked if update.uid not in leaving],
        used=used_without(cluster.used, node=subject.node, pods=specs),
        pods={subject.node: moving},
    )
    report = simulate(after, SimulationQuestion())
    return {placement.uid: placement for placement in report.placements}


def _left(raw: msgspec.Raw | bytes, subject: DrainSubject, leaving: Collection[str]) -> msgspec.Raw | bytes:
    share_node = readable_share_node(raw)
    if share_node is None or share_node["metadata"]["name"] != subject.node:
        return raw
    return msgspec.json.encode(with_cordoned(without_pods(share_node, leaving), subject.uuids))
