"""``namespaces``: what the pods of each namespace hold together, beside its ResourceQuota."""

from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import ClassVar

from msgspec import Struct, field

from gpushare_cli.decide.holders.pod_holding import HolderPhase, PodHolding
from gpushare_cli.decide.inspection.shared_node import SharedNode
from gpushare_cli.decide.objects.resource_quota import ResourceQuotaObject
from gpushare_cli.report import CommandReport
from gpushare_core.placement.quantity import read_amount

QUOTA_PREFIX = "requests."
"""Before the name of an extended resource: Kubernetes has no quota for its limits, which are the same."""


class QuotaLimit(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a ResourceQuota says of one of our resources."""

    quota: str
    resource: str
    hard_units: int
    used_units: int
    """As Kubernetes counts: what all pods that have not ended ask for, those that wait as well."""


class NamespaceHolding(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str
    pods: int = 0
    """Those that hold something."""
    cards: int = 0
    """Of which they hold something."""
    units: dict[str, int] = field(default_factory=dict)
    """Name of an extended resource -> what they hold."""
    asked_bytes: int = 0
    """What that is worth."""
    used_bytes: int | None = None
    """None: not known of every pod."""
    waiting_pods: int = 0
    waiting_units: dict[str, int] = field(default_factory=dict)
    quotas: Sequence[QuotaLimit] | None = ()
    """None: they could not be read."""


class NamespacesReport(CommandReport, frozen=True, kw_only=True):
    kind: ClassVar[str] = "NamespaceHoldings"
    namespaces: Sequence[NamespaceHolding] = ()
    quota_keys: Sequence[str] = ()
    """What a ResourceQuota can limit, such as ``requests.gpushare.io/memory``: by the dialects in force."""
    unread: Sequence[str] = ()
    """Sentences: what could not be read, and what is therefore not known."""
    unmeasured: Sequence[str] = ()
    """Why use is not known, and of which policies."""

    @property
    def names(self) -> Sequence[str]:
        return [f"namespace/{namespace.name}" for namespace in self.namespaces]


def namespaces_report(
    pods: Sequence[PodHolding],
    nodes: Sequence[SharedNode],
    quotas: Sequence[ResourceQuotaObject] | None,
    *,
    namespace: str = "",
    unread: Sequence[str] = (),
    unmeasured: Sequence[str] = (),
) -> NamespacesReport:
    """``quotas``: None where they could not be read. ``namespace``: empty for all."""
    limits = None if quotas is None else quota_limits(quotas)
    by_namespace: dict[str, list[PodHolding]] = {name: [] for name in limits or ()}
    for pod in pods:
        by_namespace.setdefault(pod.namespace, []).append(pod)
    names = {resource.name: None for node in nodes for resource in node.resources}
    return NamespacesReport(
        namespaces=[
            _namespace(name, by_namespace[name], None if limits is None else limits.get(name, ()))
            for name in sorted(by_namespace)
            if namespace in ("", name)
        ],
        quota_keys=[f"{QUOTA_PREFIX}{name}" for name in names],
        unread=unread,
        unmeasured=unmeasured,
    )


def _namespace(
    name: str, pods: Sequence[PodHolding], quotas: Sequence[QuotaLimit] | None
) -> NamespaceHolding:
    holding = [pod for pod in pods if pod.holds]
    waiting = [pod for pod in pods if pod.state is HolderPhase.WAITING]
    used = [pod.used_bytes for pod in holding]
    return NamespaceHolding(
        name=name,
        pods=len(holding),
        cards=len({card.uuid for pod in holding for card in pod.cards}),
        units=_sum(pod.units for pod in holding),
        asked_bytes=sum(pod.asked_bytes or 0 for pod in holding),
        used_bytes=None if None in used else sum(size or 0 for size in used),
        waiting_pods=len(waiting),
        waiting_units=_sum(pod.units for pod in waiting),
        quotas=quotas,
    )


def _sum(amounts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for units in amounts:
        for name, amount in units.items():
            total[name] = total.get(name, 0) + amount
    return total


def quota_limits(quotas: Sequence[ResourceQuotaObject]) -> dict[str, list[QuotaLimit]]:
    """Returns namespace -> what quotas limit of our resources, in any dialect."""
    from gpushare_core.dialects.table import RESOURCES

    found: dict[str, list[QuotaLimit]] = {}
    for quota in quotas:
        used = quota.status.used or {}
        for key, hard in quota.hard.items():
            resource = key.removeprefix(QUOTA_PREFIX)
            if key.startswith(QUOTA_PREFIX) and resource in RESOURCES:
                limit = QuotaLimit(
                    quota=quota.metadata.name,
                    resource=resource,
                    hard_units=ceil(read_amount(hard)),
                    used_units=ceil(read_amount(used.get(key))),
                )
                found.setdefault(quota.metadata.namespace, []).append(limit)
    return found
