"""From the API server's JSON to what the operator knows of an object: one reader per kind."""

from datetime import datetime
from sys import intern
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from gpushare_core.api.conditions import TRUE, Condition
from gpushare_core.api.names import COMPONENT_LABEL, POLICY_LABEL
from gpushare_core.api.policy import MemoryTotals, PolicySpec, PolicyStatus, UnitTotals
from gpushare_core.books.dialects import DIALECTS
from gpushare_core.json_object import Json
from gpushare_operator.cluster.labels import (
    COMMAND_LABEL,
    HASH_ANNOTATION,
    JOB_NAME_LABEL,
    NODE_ANNOTATION,
    NODE_UID_ANNOTATION,
    SEQUENCE_LABEL,
)
from gpushare_operator.cluster.objects import (
    DaemonSetObject,
    JobObject,
    NodeObject,
    PodObject,
    PolicyObject,
    ShareNodeObject,
)

Totals = TypeVar("Totals", bound=BaseModel)

EXTENDED_RESOURCES = frozenset(name for dialect in DIALECTS.values() for name in dialect.resources)
"""Those that only our plugins offer."""


def read_policy(body: Json) -> PolicyObject:
    metadata = body["metadata"]
    spec, error = _policy_spec(body)
    return PolicyObject(
        name=metadata["name"],
        uid=metadata["uid"],
        resource_version=metadata.get("resourceVersion", ""),
        generation=metadata.get("generation", 1),
        created=metadata.get("creationTimestamp", ""),
        deleting=_is_deleting(body),
        finalizers=tuple(metadata.get("finalizers", ())),
        spec=spec,
        error=error,
        status=_policy_status(body),
    )


def _policy_spec(body: Json) -> tuple[PolicySpec | None, str]:
    """Returns the spec, or None and what is wrong with it."""
    try:
        return PolicySpec.model_validate(body.get("spec")), ""
    except ValidationError as error:
        return None, "; ".join(_location_and_message(detail) for detail in error.errors()[:3])


def _location_and_message(detail: Any) -> str:
    return f"{'.'.join(str(part) for part in detail['loc'])}: {detail['msg']}"


def _policy_status(body: Json) -> PolicyStatus:
    try:
        return PolicyStatus.model_validate(body.get("status") or {})
    except ValidationError:
        return PolicyStatus()


def read_node(body: Json) -> NodeObject:
    metadata, status = body["metadata"], body.get("status", {})
    offered = {*(status.get("capacity") or ()), *(status.get("allocatable") or ())} & EXTENDED_RESOURCES
    return NodeObject(
        name=metadata["name"],
        uid=metadata["uid"],
        # Thousands of nodes carry the same words.
        labels={intern(key): intern(value) for key, value in (metadata.get("labels") or {}).items()},
        ready=_is_condition_true(status, "Ready"),
        deleting=_is_deleting(body),
        offered=tuple(sorted(offered)),
    )


def read_share_node(body: Json) -> ShareNodeObject:
    metadata, status = body["metadata"], body.get("status") or {}
    cards = status.get("cards", ())
    return ShareNodeObject(
        name=metadata["name"],
        uid=metadata["uid"],
        generation=metadata.get("generation", 1),
        deleting=_is_deleting(body),
        owners=tuple(owner["uid"] for owner in metadata.get("ownerReferences", ())),
        spec=dict(body.get("spec") or {}),
        observed_generation=status.get("observedGeneration", 0),
        conditions=_conditions_by_type(status),
        units=_totals(UnitTotals, status.get("units")),
        memory=_totals(MemoryTotals, status.get("memory")),
        cards=len(cards),
        unhealthy_cards=sum(card.get("health") == "Unhealthy" for card in cards),
    )


def _totals(model: type[Totals], body: Any) -> Totals:
    """Returns zeros for what keeps to no schema: one object must not keep the others from being read."""
    try:
        return model.model_validate(body or {})
    except ValidationError:
        return model()


def _conditions_by_type(status: Json) -> dict[str, Condition]:
    """Raises nothing: what the schema lets pass parses."""
    parsed = (Condition.model_validate(condition) for condition in status.get("conditions", ()))
    return {condition.type: condition for condition in parsed}


def read_daemon_set(body: Json) -> DaemonSetObject:
    metadata = body["metadata"]
    kept = ("name", "namespace", "labels", "annotations", "ownerReferences")
    return DaemonSetObject(
        name=metadata["name"],
        uid=metadata["uid"],
        policy=metadata.get("labels", {}).get(POLICY_LABEL, ""),
        deleting=_is_deleting(body),
        body={
            "metadata": {key: metadata[key] for key in kept if key in metadata},
            "spec": body.get("spec", {}),
        },
    )


def read_job(body: Json) -> JobObject:
    metadata, status = body["metadata"], body.get("status", {})
    labels, annotations = metadata.get("labels", {}), metadata.get("annotations", {})
    failure = _true_condition(status, "Failed")
    end = failure or _true_condition(status, "Complete")
    return JobObject(
        name=metadata["name"],
        uid=metadata["uid"],
        command=labels.get(COMMAND_LABEL, ""),
        node=annotations.get(NODE_ANNOTATION, ""),
        node_uid=annotations.get(NODE_UID_ANNOTATION, ""),
        sequence=_whole_number(labels.get(SEQUENCE_LABEL, "")),
        spec_hash=annotations.get(HASH_ANNOTATION, ""),
        deleting=_is_deleting(body),
        complete=end is not None and failure is None,
        failed=failure is not None,
        failure=(failure or {}).get("reason", ""),
        finished=datetime.fromisoformat(end["lastTransitionTime"]) if end else None,
    )


def read_pod(body: Json) -> PodObject:
    metadata, status = body["metadata"], body.get("status", {})
    labels = metadata.get("labels", {})
    containers = status.get("containerStatuses") or ()
    terminated = _container_state(containers, "terminated")
    return PodObject(
        name=metadata["name"],
        component=labels.get(COMPONENT_LABEL, ""),
        policy=labels.get(POLICY_LABEL, ""),
        job=labels.get(JOB_NAME_LABEL, ""),
        node=body.get("spec", {}).get("nodeName", ""),
        ready=_is_condition_true(status, "Ready") and not _is_deleting(body),
        exit_code=terminated.get("exitCode"),
        termination=terminated.get("message", ""),
        waiting=_why_waiting(_container_state(containers, "waiting")),
    )


def _container_state(containers: Any, kind: str) -> Json:
    """Returns the first state of that kind; empty when no container is in one."""
    states = (container.get("state", {}).get(kind) for container in containers)
    return next((state for state in states if state), {})


def _why_waiting(state: Json) -> str:
    reason, message = state.get("reason", ""), state.get("message", "")
    return f"{reason}: {message}" if message else reason


def _is_deleting(body: Json) -> bool:
    return "deletionTimestamp" in body["metadata"]


def _true_condition(status: Json, kind: str) -> Json | None:
    of_kind = (condition for condition in status.get("conditions") or () if condition["type"] == kind)
    return next((condition for condition in of_kind if condition["status"] == TRUE), None)


def _is_condition_true(status: Json, kind: str) -> bool:
    return _true_condition(status, kind) is not None


def _whole_number(text: str) -> int:
    return int(text) if text.isdecimal() else 0
