"""What the operator needs to know of the cluster's objects, and nothing else: there can be thousands."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from sys import intern
from typing import Any

from pydantic import ValidationError

from gpushare_core.api.conditions import Condition
from gpushare_core.api.names import COMPONENT_LABEL, POLICY_LABEL
from gpushare_core.api.policy import PolicySpec, PolicyStatus
from gpushare_core.books.dialects import DIALECTS
from gpushare_operator.desired.names import (
    ACTION_LABEL,
    HASH_ANNOTATION,
    NODE_ANNOTATION,
    NODE_UID_ANNOTATION,
    SEQUENCE_LABEL,
)

Json = Mapping[str, Any]

RESOURCES = frozenset(name for dialect in DIALECTS.values() for name in dialect.resources)
"""Extended resources that only our plugins offer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyView:
    """A GPUSharePolicy. ``spec`` is None when the object does not keep to the schema; ``error`` says why."""

    name: str
    uid: str
    resource_version: str = ""
    generation: int = 1
    created: str = ""
    deleting: bool = False
    finalizers: tuple[str, ...] = ()
    spec: PolicySpec | None
    error: str = ""
    status: PolicyStatus = field(default_factory=PolicyStatus)

    @property
    def seniority(self) -> tuple[str, str]:
        """Orders policies, the oldest first."""
        return (self.created, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """A Node."""

    name: str
    uid: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    ready: bool = True
    deleting: bool = False
    offered: tuple[str, ...] = ()
    """Our extended resources in its capacity or allocatable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareNodeView:
    """A GPUShareNode; of its status only what a policy sums up."""

    name: str
    uid: str = ""
    generation: int = 1
    deleting: bool = False
    owners: tuple[str, ...] = ()
    """UIDs."""
    spec: Json
    observed_generation: int = 0
    conditions: Mapping[str, Condition] = field(default_factory=dict)
    units: tuple[int, int] = (0, 0)
    """Total, allocated."""
    memory: tuple[str, str, str] = ("0", "0", "0")
    """Total, allocated, used."""
    cards: int = 0
    unhealthy: int = 0

    @property
    def policy(self) -> str:
        return str(self.spec.get("policy", ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonSetView:
    """One of our DaemonSets; ``body`` is what the API server holds, for comparison."""

    name: str
    uid: str = ""
    policy: str = ""
    deleting: bool = False
    body: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """One run of hostctl on one node."""

    name: str
    uid: str = ""
    action: str
    node: str
    node_uid: str
    sequence: int
    spec_hash: str = ""
    deleting: bool = False
    complete: bool = False
    failed: bool = False
    failure: str = ""
    finished: datetime | None = None

    @property
    def active(self) -> bool:
        return not (self.complete or self.failed)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodView:
    """One of our pods."""

    name: str
    component: str
    policy: str = ""
    job: str = ""
    node: str = ""
    ready: bool = False
    phase: str = "Pending"
    exit_code: int | None = None
    termination: str = ""
    """What the first container wrote into its termination message."""
    waiting: str = ""
    """Why a container does not start, for people."""


def policy_view(body: Json) -> PolicyView:
    metadata = body["metadata"]
    spec, error = _policy_spec(body)
    return PolicyView(
        name=metadata["name"],
        uid=metadata["uid"],
        resource_version=metadata.get("resourceVersion", ""),
        generation=metadata.get("generation", 1),
        created=metadata.get("creationTimestamp", ""),
        deleting=_deleting(body),
        finalizers=tuple(metadata.get("finalizers", ())),
        spec=spec,
        error=error,
        status=_policy_status(body),
    )


def _policy_spec(body: Json) -> tuple[PolicySpec | None, str]:
    try:
        return PolicySpec.model_validate(body.get("spec")), ""
    except ValidationError as error:
        places = (
            f"{'.'.join(str(part) for part in each['loc'])}: {each['msg']}" for each in error.errors()[:3]
        )
        return None, "; ".join(places)


def _policy_status(body: Json) -> PolicyStatus:
    try:
        return PolicyStatus.model_validate(body.get("status") or {})
    except ValidationError:
        return PolicyStatus()


def node_view(body: Json) -> NodeView:
    metadata, status = body["metadata"], body.get("status", {})
    offered = {*(status.get("capacity") or ()), *(status.get("allocatable") or ())} & RESOURCES
    return NodeView(
        name=metadata["name"],
        uid=metadata["uid"],
        # Thousands of nodes carry the same words.
        labels={intern(key): intern(value) for key, value in (metadata.get("labels") or {}).items()},
        ready=_condition_holds(status, "Ready"),
        deleting=_deleting(body),
        offered=tuple(sorted(offered)),
    )


def share_node_view(body: Json) -> ShareNodeView:
    metadata, status = body["metadata"], body.get("status") or {}
    units, memory, cards = status.get("units", {}), status.get("memory", {}), status.get("cards", ())
    return ShareNodeView(
        name=metadata["name"],
        uid=metadata["uid"],
        generation=metadata.get("generation", 1),
        deleting=_deleting(body),
        owners=tuple(owner["uid"] for owner in metadata.get("ownerReferences", ())),
        spec=dict(body.get("spec") or {}),
        observed_generation=status.get("observedGeneration", 0),
        conditions=_conditions(status),
        units=(units.get("total", 0), units.get("allocated", 0)),
        memory=(memory.get("total", "0"), memory.get("allocated", "0"), memory.get("used", "0")),
        cards=len(cards),
        unhealthy=sum(card.get("health") == "Unhealthy" for card in cards),
    )


def _conditions(status: Json) -> dict[str, Condition]:
    """By type; what the schema lets pass parses."""
    return {each["type"]: Condition.model_validate(each) for each in status.get("conditions", ())}


def daemon_set_view(body: Json) -> DaemonSetView:
    metadata = body["metadata"]
    kept = ("name", "namespace", "labels", "annotations", "ownerReferences")
    return DaemonSetView(
        name=metadata["name"],
        uid=metadata["uid"],
        policy=metadata.get("labels", {}).get(POLICY_LABEL, ""),
        deleting=_deleting(body),
        body={
            "metadata": {key: metadata[key] for key in kept if key in metadata},
            "spec": body.get("spec", {}),
        },
    )


def job_view(body: Json) -> JobView:
    metadata, status = body["metadata"], body.get("status", {})
    labels, annotations = metadata.get("labels", {}), metadata.get("annotations", {})
    failure = _condition(status, "Failed")
    end = failure or _condition(status, "Complete")
    return JobView(
        name=metadata["name"],
        uid=metadata["uid"],
        action=labels.get(ACTION_LABEL, ""),
        node=annotations.get(NODE_ANNOTATION, ""),
        node_uid=annotations.get(NODE_UID_ANNOTATION, ""),
        sequence=_whole_number(labels.get(SEQUENCE_LABEL, "")),
        spec_hash=annotations.get(HASH_ANNOTATION, ""),
        deleting=_deleting(body),
        complete=end is not None and failure is None,
        failed=failure is not None,
        failure=(failure or {}).get("reason", ""),
        finished=_moment(end["lastTransitionTime"]) if end else None,
    )


def pod_view(body: Json) -> PodView:
    metadata, status = body["metadata"], body.get("status", {})
    labels = metadata.get("labels", {})
    containers = status.get("containerStatuses") or ()
    ended = _state(containers, "terminated")
    return PodView(
        name=metadata["name"],
        component=labels.get(COMPONENT_LABEL, ""),
        policy=labels.get(POLICY_LABEL, ""),
        job=labels.get("batch.kubernetes.io/job-name", ""),
        node=body.get("spec", {}).get("nodeName", ""),
        ready=_condition_holds(status, "Ready") and not _deleting(body),
        phase=status.get("phase", "Pending"),
        exit_code=ended.get("exitCode"),
        termination=ended.get("message", ""),
        waiting=_why_waiting(_state(containers, "waiting")),
    )


def _state(containers: Any, kind: str) -> Json:
    states = (container.get("state", {}).get(kind) for container in containers)
    return next((state for state in states if state), {})


def _why_waiting(state: Json) -> str:
    reason, message = state.get("reason", ""), state.get("message", "")
    return f"{reason}: {message}" if message else reason


def _deleting(body: Json) -> bool:
    return "deletionTimestamp" in body["metadata"]


def _condition(status: Json, kind: str) -> Json | None:
    held = (each for each in status.get("conditions") or () if each["type"] == kind)
    return next((each for each in held if each["status"] == "True"), None)


def _condition_holds(status: Json, kind: str) -> bool:
    return _condition(status, kind) is not None


def _whole_number(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
