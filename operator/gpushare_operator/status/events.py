"""Kubernetes Events about a policy, from the difference between its stored status and the new one, so that a
restarted operator repeats none."""

from collections.abc import Iterator, Mapping
from datetime import datetime

from gpushare_core.api.conditions import TRUE, Condition
from gpushare_core.api.events import new_event
from gpushare_core.api.plugin_heartbeat import IsolationFiles
from gpushare_core.api.policy_status import PolicyStatus
from gpushare_core.api.share_node import ISOLATION_FOLDER
from gpushare_core.api.timestamps import rfc3339
from gpushare_core.text.json_object import Json
from gpushare_operator.cluster.labels import LEAVE_ISOLATION_FILES_ANNOTATION, MANAGER
from gpushare_operator.cluster.objects import PolicyObject
from gpushare_operator.desired.share_nodes import policy_reference
from gpushare_operator.policies import conditions
from gpushare_operator.policies.wording import listed
from gpushare_operator.status.conditions.books_agree import differed_when_seen
from gpushare_operator.status.nodes.node_facts import Notice

NORMAL_WHEN_TRUE = frozenset({conditions.READY, conditions.SCHEDULER_CONFIGURED})
"""Condition types."""
NORMAL_WHEN_TRUE_AGAIN = frozenset({conditions.BOOKS_AGREE})
"""Condition types with a Normal Event only when they become True again."""
WARNING_WHEN_TRUE = frozenset({conditions.CONFLICTED, conditions.UNIT_CHANGE_BLOCKED, conditions.DEGRADED})
WARNING_REASONS = frozenset(
    {
        conditions.CONNECTION_LOST,
        conditions.HOSTS_UNLABELLED,
        conditions.HOSTS_LET_GO,
        conditions.INSTALL_FAILED,
        conditions.RESTORE_FAILED,
        conditions.NEEDS_ATTENTION,
        conditions.NO_CONTROL_PLANE,
        conditions.CONFIG_MAP_MISSING,
        conditions.CONFIG_MAP_FORBIDDEN,
        conditions.NO_NODES_SELECTED,
        conditions.BOOKS_DIFFER,
    }
)


def events_for(policy: PolicyObject, status: PolicyStatus, now: datetime) -> list[Json]:
    before = {condition.type: condition for condition in policy.status.conditions}
    return [
        _policy_event(
            policy,
            event_type=event_type,
            reason=condition.type if event_type == "Normal" else condition.reason,
            note=condition.message,
            seed=f"{condition.type}/{condition.reason}/{condition.last_transition_time}",
            now=now,
        )
        for condition in status.conditions
        for event_type in _event_types(before.get(condition.type), condition)
    ]


def _event_types(old: Condition | None, new: Condition) -> Iterator[str]:
    if old and (old.status, old.reason) == (new.status, new.reason):
        return
    is_true = new.status == TRUE
    # Ready only repeats the reason of another condition.
    is_bad = new.type != conditions.READY and new.reason in WARNING_REASONS
    is_back = new.type in NORMAL_WHEN_TRUE_AGAIN and differed_when_seen(old)
    if is_true and (is_back or new.type in NORMAL_WHEN_TRUE):
        yield "Normal"
    elif is_bad or (is_true and new.type in WARNING_WHEN_TRUE):
        yield "Warning"


def notice_event(policy: PolicyObject, notice: Notice, now: datetime) -> Json:
    return _policy_event(
        policy,
        event_type="Warning" if notice.is_bad else "Normal",
        reason=notice.reason,
        note=notice.note,
        seed=f"{notice.reason}/{notice.note}",
        now=now,
    )


def left_files_event(policy: PolicyObject, files: Mapping[str, IsolationFiles], now: datetime) -> Json:
    """Returns the Event about what a deleted policy leaves on nodes, because people asked for it."""
    pods = [pod for left in files.values() for pod in left.pods]
    needed = f", which pods {listed(pods)} need" if pods else ""
    note = (
        f"files of isolation stay on {listed(files)}{needed}: remove {ISOLATION_FOLDER} there when no"
        f" container needs them any more; {LEAVE_ISOLATION_FILES_ANNOTATION} of the policy asked for that"
    )
    reason = "IsolationFilesLeft"
    return _policy_event(policy, event_type="Warning", reason=reason, note=note, seed=reason, now=now)


def _policy_event(
    policy: PolicyObject, *, event_type: str, reason: str, note: str, seed: str, now: datetime
) -> Json:
    """Returns the Event. It is named by ``seed`` and the second of ``now``: a repetition within that second
    collides with the first."""
    second = now.replace(microsecond=0)
    return new_event(
        regarding=policy_reference(policy),
        type_=event_type,
        reason=reason,
        action="Reconcile",
        note=note,
        seed=f"{policy.uid}/{seed}/{rfc3339(second)}",
        controller=MANAGER,
        now=second,
    )
