"""Kubernetes Events about a policy: the turning points of its conditions, and nothing twice.

They follow from the difference between the stored status and the new one, so that a restarted operator does
not repeat them.
"""

import hashlib
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from gpushare_core.api.conditions import Condition
from gpushare_core.api.names import API_VERSION, POLICY_KIND
from gpushare_core.api.policy import PolicyStatus
from gpushare_core.api.timestamps import rfc3339
from gpushare_operator.cluster.objects import PolicyView
from gpushare_operator.desired.names import MANAGER
from gpushare_operator.status import conditions as reasons

Json = dict[str, Any]

NAMESPACE = "default"
"""Where Events about cluster-scoped objects live."""

GOOD_NEWS = frozenset({reasons.READY, reasons.SCHEDULER_CONFIGURED})
"""Types worth a Normal event when they become true."""
BAD_WHEN_TRUE = frozenset({reasons.CONFLICTED, reasons.UNIT_CHANGE_BLOCKED, reasons.DEGRADED})
BAD_REASONS = frozenset(
    {
        reasons.INSTALL_FAILED,
        reasons.RESTORE_FAILED,
        reasons.NEEDS_ATTENTION,
        reasons.NO_CONTROL_PLANE,
        reasons.NO_NODES_SELECTED,
    }
)


def events_for(policy: PolicyView, status: PolicyStatus, now: datetime) -> list[Json]:
    """Events of what changes from the stored status of ``policy`` to ``status``."""
    before = {each.type: each for each in policy.status.conditions}
    return [
        _event(policy, each, kind, now)
        for each in status.conditions
        for kind in _kinds(before.get(each.type), each)
    ]


def _kinds(old: Condition | None, new: Condition) -> Iterator[str]:
    if old and (old.status, old.reason) == (new.status, new.reason):
        return
    is_true = new.status == "True"
    if is_true and new.type in GOOD_NEWS:
        yield "Normal"
    elif (is_true and new.type in BAD_WHEN_TRUE) or (new.type != reasons.READY and new.reason in BAD_REASONS):
        yield "Warning"


def _event(policy: PolicyView, condition: Condition, kind: str, now: datetime) -> Json:
    """Source: ``events.k8s.io/v1``. The name makes a repetition collide with the first."""
    moment = rfc3339(now)
    seed = f"{policy.uid}/{condition.type}/{condition.reason}/{condition.last_transition_time}/{moment}"
    digest = hashlib.sha256(seed.encode()).hexdigest()[:16]
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"{policy.name}.{digest}", "namespace": NAMESPACE},
        "eventTime": moment.replace("Z", ".000000Z"),
        "type": kind,
        "reason": condition.type if kind == "Normal" else condition.reason,
        "note": condition.message[:1000],
        "action": "Reconcile",
        "reportingController": MANAGER,
        "reportingInstance": MANAGER,
        "regarding": {
            "apiVersion": API_VERSION,
            "kind": POLICY_KIND,
            "name": policy.name,
            "uid": policy.uid,
        },
    }
