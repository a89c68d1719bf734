"""From the API server's JSON to what the operator knows of an object: one reader per kind."""

import json
import re
from datetime import datetime
from pathlib import PurePosixPath
from sys import intern
from typing import Any

import msgspec
from pydantic import ValidationError

from gpushare_core.api.names import (
    CALLED_PORT_ANNOTATION,
    COMPONENT_LABEL,
    FIELD_MANAGER,
    OTHER_SCHEDULERS_ANNOTATION,
    POLICY_LABEL,
    STARTUP_TAINT,
    VERSION_LABEL,
)
from gpushare_core.api.policy import PolicySpec
from gpushare_core.api.policy_status import PolicyStatus
from gpushare_core.audit.extender_report import decode_reports
from gpushare_core.dialects.table import DIALECTS, RESOURCES, SHARED_RESOURCES
from gpushare_core.placement.requests import read_request
from gpushare_core.text.json_object import UNREADABLE_JSON, Json
from gpushare_core.text.whole_number import is_number, whole_number
from gpushare_operator.cluster.labels import (
    ASKED_ANNOTATION,
    COMMAND_LABEL,
    DIALECT_LABELS,
    DRIFT_ANNOTATION,
    HASH_ANNOTATION,
    INPUTS_ANNOTATION,
    JOB_NAME_LABEL,
    LET_GO_ANNOTATION,
    NODE_ANNOTATION,
    NODE_UID_ANNOTATION,
    PORT_ANNOTATION,
    RENEW_ANNOTATION,
    RESULT_ANNOTATION,
    RETRY_ANNOTATION,
    ROLLED_BACK_ANNOTATION,
    SEQUENCE_LABEL,
    read_marks,
    read_ports,
)
from gpushare_operator.cluster.managed_fields import managers
from gpushare_operator.cluster.object_parts import is_condition_true, is_deleting, read_time, true_condition
from gpushare_operator.cluster.objects import (
    CallsObject,
    DaemonSetObject,
    DeploymentObject,
    JobObject,
    NodeObject,
    NodeStartupTaint,
    PodObject,
    PolicyObject,
    ReadResult,
    SchedulerObject,
    VolcanoBackupObject,
    VolcanoConfigObject,
    VolcanoLocation,
)

COUNT_RESOURCES = frozenset(dialect.count_resource for dialect in DIALECTS.values()) - {""}
CLOSED_CARDS_ANNOTATIONS = frozenset(each.closed_cards_annotation for each in DIALECTS.values()) - {""}
EXTENDED_RESOURCES = COUNT_RESOURCES | RESOURCES.keys()
"""What nodes show in any dialect; others' plugins may offer some of it, too."""
STARTING = ("ContainerCreating", "PodInitializing")
"""Why a container waits as long as its kubelet makes the pod ready for it."""
OWN_RESOURCES = {name: resource for name, resource in RESOURCES.items() if name not in SHARED_RESOURCES}
"""What a pod asks for of us alone, in any dialect."""


def read_policy(body: Json) -> PolicyObject:
    metadata = body["metadata"]
    annotations = metadata.get("annotations") or {}
    spec, error = _policy_spec(body)
    return PolicyObject(
        name=metadata["name"],
        uid=metadata["uid"],
        resource_version=metadata.get("resourceVersion", ""),
        generation=metadata.get("generation", 1),
        created=metadata.get("creationTimestamp", ""),
        deleting=is_deleting(body),
        finalizers=tuple(metadata.get("finalizers", ())),
        retry=annotations.get(RETRY_ANNOTATION, ""),
        let_go=_names(annotations.get(LET_GO_ANNOTATION, "")),
        marks=read_marks(metadata.get("labels") or {}, annotations),
        spec=spec,
        error=error,
        status=_policy_status(body),
    )


def _names(text: str) -> frozenset[str]:
    return frozenset(name.strip() for name in text.split(",")) - {""}


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
        return msgspec.convert(body.get("status") or {}, PolicyStatus)
    except msgspec.ValidationError:
        return PolicyStatus()


def read_node(body: Json) -> NodeObject:
    metadata, status = body["metadata"], body.get("status", {})
    amounts, annotations = _extended_resources(status), metadata.get("annotations") or {}
    return NodeObject(
        name=metadata["name"],
        uid=metadata["uid"],
        # Thousands of nodes carry the same words.
        labels={intern(key): intern(value) for key, value in (metadata.get("labels") or {}).items()},
        ready=is_condition_true(status, "Ready"),
        deleting=is_deleting(body),
        own_labels=_own_labels(metadata),
        closed_cards={key: text for key, text in annotations.items() if key in CLOSED_CARDS_ANNOTATIONS},
        offered=tuple(sorted(amounts.keys() - _others_counts(metadata, status))),
        zeros=frozenset(name for name, pair in amounts.items() if set(pair) <= {"", "0"}),
        counts={name: pair for name, pair in amounts.items() if name in COUNT_RESOURCES},
        startup_taint=_startup_taint(body),
    )


def _startup_taint(body: Json) -> NodeStartupTaint | None:
    taints = body.get("spec", {}).get("taints") or ()
    others = tuple(taint for taint in taints if taint.get("key") != STARTUP_TAINT)
    if len(others) == len(taints):
        return None
    return NodeStartupTaint(body["metadata"].get("resourceVersion", ""), others)


def _extended_resources(status: Json) -> dict[str, tuple[str, str]]:
    """Returns capacity and allocatable by name; empty where only the other one is there."""
    capacity, allocatable = status.get("capacity") or {}, status.get("allocatable") or {}
    names = EXTENDED_RESOURCES & (capacity.keys() | allocatable.keys())
    return {name: (capacity.get(name, ""), allocatable.get(name, "")) for name in names}


def _others_counts(metadata: Json, status: Json) -> frozenset[str]:
    """Returns the numbers of cards that somebody else has written: neither the operator nor the kubelet.

    The kubelet is whoever tells of the machine; that is not called so everywhere.
    """
    present = COUNT_RESOURCES & (status.get("capacity") or {}).keys()
    if not present:
        return frozenset()
    fields, body = metadata.get("managedFields") or (), {"status": status}
    ours = {FIELD_MANAGER, *managers(fields, body, ("status", "nodeInfo"))}
    owners = {name: managers(fields, body, ("status", "capacity", name)) for name in present}
    return frozenset(name for name in present if owners[name] and not owners[name] & ours)


def _own_labels(metadata: Json) -> frozenset[str]:
    """Returns labels of dialects that nobody else has set since the operator did."""
    present = DIALECT_LABELS & (metadata.get("labels") or {}).keys()
    fields, body = metadata.get("managedFields") or (), {"metadata": metadata}
    return frozenset(
        key for key in present if managers(fields, body, ("metadata", "labels", key)) == {FIELD_MANAGER}
    )


def read_daemon_set(body: Json) -> DaemonSetObject:
    metadata = body["metadata"]
    kept = ("name", "namespace", "labels", "annotations", "ownerReferences")
    return DaemonSetObject(
        name=metadata["name"],
        uid=metadata["uid"],
        policy=metadata.get("labels", {}).get(POLICY_LABEL, ""),
        deleting=is_deleting(body),
        created=read_time(metadata.get("creationTimestamp")),
        body={
            "metadata": {key: metadata[key] for key in kept if key in metadata},
            "spec": body.get("spec", {}),
        },
        managed_fields=_field_owners(metadata),
        outdated=_outdated(metadata.get("generation", 1), body.get("status") or {}),
    )


def _outdated(generation: int, status: Json) -> int:
    """Returns of how many nodes the pod is not of the present template; 0 while no pod was made of any."""
    updated = status.get("updatedNumberScheduled", 0) if status.get("observedGeneration") == generation else 0
    wanted: int = status.get("desiredNumberScheduled", 0)
    return wanted - updated


def _field_owners(metadata: Json) -> list[Json]:
    """Returns who owns which field; those of the status, which changes all the time, matter to nobody."""
    return [
        managed_field
        for managed_field in metadata.get("managedFields", ())
        if managed_field.get("subresource") != "status"
    ]


def read_deployment(body: Json) -> DeploymentObject:
    metadata, spec, status = body["metadata"], body.get("spec", {}), body.get("status", {})
    kept = ("name", "namespace", "labels", "annotations")
    is_observed = status.get("observedGeneration", 0) >= metadata.get("generation", 1)
    is_updated = status.get("updatedReplicas", 0) == status.get("replicas", 0) == spec.get("replicas", 1)
    return DeploymentObject(
        name=metadata["name"],
        uid=metadata["uid"],
        deleting=is_deleting(body),
        body={"metadata": {key: metadata[key] for key in kept if key in metadata}, "spec": spec},
        managed_fields=_field_owners(metadata),
        is_rolled_out=is_observed and is_updated and status.get("readyReplicas", 0) > 0,
    )


def read_server_version(body: Json) -> str:
    """Returns the tag of images of that version; what providers add to it is no part of any.

    Source: ``k8s.io/apimachinery/pkg/version.Info``, such as ``v1.31.5-gke.1233000``.
    """
    match = re.match(r"v[0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,9}", str(body.get("gitVersion", "")))
    return match[0] if match else ""


def read_pod_without_scheduler(body: Json) -> str:
    """Returns a pod's ``NAMESPACE/NAME`` if it asks for cards and waits for its scheduler, else nothing."""
    metadata, spec = body["metadata"], body.get("spec") or {}
    asks = read_request(spec, OWN_RESOURCES).resources
    if spec.get("schedulingGates") or is_deleting(body) or not asks:
        return ""
    return f"{metadata['namespace']}/{metadata['name']}"


def read_job(body: Json) -> JobObject:
    metadata, status = body["metadata"], body.get("status", {})
    labels, annotations = metadata.get("labels", {}), metadata.get("annotations", {})
    failing = true_condition(status, "FailureTarget")
    failure = true_condition(status, "Failed")
    end = failure or true_condition(status, "Complete")
    return JobObject(
        name=metadata["name"],
        uid=metadata["uid"],
        command=labels.get(COMMAND_LABEL, ""),
        node=annotations.get(NODE_ANNOTATION, ""),
        node_uid=annotations.get(NODE_UID_ANNOTATION, ""),
        sequence=whole_number(labels.get(SEQUENCE_LABEL, "")),
        spec_hash=annotations.get(HASH_ANNOTATION, ""),
        inputs_hash=annotations.get(INPUTS_ANNOTATION, ""),
        rolled_back_inputs=annotations.get(ROLLED_BACK_ANNOTATION, ""),
        extender_ports=read_ports(annotations.get(PORT_ANNOTATION, "")),
        asked=_asked(annotations.get(ASKED_ANNOTATION, "")),
        renew_after=read_time(annotations.get(RENEW_ANNOTATION)),
        has_drifted=DRIFT_ANNOTATION in annotations,
        result=_result(annotations.get(RESULT_ANNOTATION, "")),
        exit_code=_exit_code((failure or failing or {}).get("message", "")),
        deleting=is_deleting(body),
        complete=end is not None and failure is None,
        failed=failure is not None,
        failing=failing is not None and end is None,
        failure=(failure or failing or {}).get("reason", ""),
        finished=read_time((end or failing or {}).get("lastTransitionTime")),
        version=labels.get(VERSION_LABEL, ""),
    )


def _asked(text: str) -> frozenset[str]:
    try:
        return frozenset(json.loads(text)) if text else frozenset()
    except (*UNREADABLE_JSON, TypeError):
        return frozenset()


def _result(text: str) -> int | None:
    return whole_number(text) if is_number(text) else None


def _exit_code(message: str) -> int | None:
    """Returns the code that ended a Job. Source: the Job controller's message for ``FailJob``."""
    match = re.search(r"failed with exit code ([0-9]{1,5}) matching", message)
    return int(match[1]) if match else None


def read_pod(body: Json) -> PodObject:
    """The pod of a manifest on a host is none of ours, whatever its labels say: they are its kubelet's to
    choose. A kubelet can make no other pods, and cannot make one of these look like another."""
    metadata, status = body["metadata"], body.get("status", {})
    labels = {} if is_static(body) else metadata.get("labels", {})
    # What comes first is what the others wait for.
    containers = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    own = [
        container for container in containers if container.get("name") == labels.get(COMPONENT_LABEL)
    ] or containers
    terminated = _container_state(own, "terminated")
    return PodObject(
        name=metadata["name"],
        component=labels.get(COMPONENT_LABEL, ""),
        policy=labels.get(POLICY_LABEL, ""),
        job=labels.get(JOB_NAME_LABEL, ""),
        node=body.get("spec", {}).get("nodeName", ""),
        ready=is_condition_true(status, "Ready") and not is_deleting(body),
        started=read_time(_container_state(own, "running").get("startedAt")),
        exit_code=terminated.get("exitCode"),
        ended=read_time(terminated.get("finishedAt")),
        is_held_open=bool(terminated and _container_state(containers, "running")),
        termination=terminated.get("message", ""),
        waiting=_why_waiting(_container_state(containers, "waiting"), metadata),
        last_words=_last_words(containers),
        extender_ports=read_ports((metadata.get("annotations") or {}).get(PORT_ANNOTATION, "")),
        version=labels.get(VERSION_LABEL, ""),
    )


def read_calls(body: Json) -> CallsObject:
    """Returns what a Lease of extenders says. The time is the server's, whatever the host's clock."""
    metadata = body["metadata"]
    annotations = metadata.get("annotations") or {}
    written = [read_time(entry.get("time")) for entry in metadata.get("managedFields") or ()]
    port = annotations.get(CALLED_PORT_ANNOTATION, "")
    return CallsObject(
        name=metadata["name"],
        port=whole_number(port),
        by=str((body.get("spec") or {}).get("holderIdentity") or ""),
        at=max((time for time in written if time), default=None) if port else None,
        reports=tuple(report for _, report in sorted(decode_reports(annotations).items())),
        other_schedulers=annotations.get(OTHER_SCHEDULERS_ANNOTATION, ""),
    )


def read_volcano_backup(body: Json) -> VolcanoBackupObject:
    """Of one that somebody has damaged nothing is left but its place."""
    metadata, data = body["metadata"], body.get("data") or {}
    return VolcanoBackupObject(
        name=metadata["name"],
        uid=metadata["uid"],
        location=VolcanoLocation(data.get("namespace", ""), data.get("configMap", ""), data.get("key", "")),
        original=data.get("original", ""),
        written=data.get("written", ""),
        additions=_additions(data.get("additions", "")),
        deleting=is_deleting(body),
    )


def _additions(text: str) -> tuple[tuple[str, str], ...]:
    pairs = (part.partition("=") for part in text.split(",") if part)
    return tuple((plugin, whole) for plugin, _, whole in pairs)


def read_volcano_config(body: Json, key: str) -> VolcanoConfigObject:
    metadata = body["metadata"]
    return VolcanoConfigObject(
        result=ReadResult.FOUND,
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
        text=(body.get("data") or {}).get(key),
    )


def is_static(body: Json) -> bool:
    """Returns whether a pod is what a kubelet shows of a manifest on its host."""
    return "kubernetes.io/config.mirror" in (body["metadata"].get("annotations") or {})


def read_scheduler(body: Json, seen: datetime) -> SchedulerObject:
    """Returns what a kubelet shows of the manifest of its kube-scheduler, as of ``seen``."""
    spec = body.get("spec", {})
    commands = [
        [*(container.get("command") or ()), *(container.get("args") or ())]
        for container in spec.get("containers") or ()
    ]
    # A container beside it has flags of its own.
    flags = next((words for words in commands if any(map(_is_scheduler, words))), [*commands, []][0])
    return SchedulerObject(
        name=body["metadata"]["name"],
        node=spec.get("nodeName", ""),
        config=_last_config(flags),
        seen=seen,
        started=_last_start(body.get("status", {}).get("containerStatuses") or ()),
    )


def _last_start(containers: Any) -> datetime | None:
    states = (container.get("state", {}).get("running") or {} for container in containers)
    starts = (read_time(state.get("startedAt")) for state in states)
    return max((start for start in starts if start), default=None)


def _is_scheduler(word: str) -> bool:
    return " " not in word and PurePosixPath(word).name == "kube-scheduler"


def _last_config(flags: list[str]) -> str:
    config = ""
    for flag, following in zip(flags, [*flags[1:], ""], strict=False):
        name, _, value = flag.partition("=")
        if name.lstrip("-") == "config":
            config = value or following
    return config


def _container_state(containers: Any, kind: str) -> Json:
    """Returns the first state of that kind; empty when no container is in one."""
    states = (container.get("state", {}).get(kind) for container in containers)
    return next((state for state in states if state), {})


def _why_waiting(state: Json, metadata: Json) -> str:
    """What holds up a pod before its first container runs, such as a folder that cannot be made, its kubelet
    says in Events only."""
    reason, message = state.get("reason", ""), state.get("message", "")
    if message:
        return f"{reason}: {message}"
    if reason in STARTING:
        where = f"kubectl -n {metadata['namespace']} describe pod {metadata['name']}"
        return f"{reason}; {where} says what it waits for"
    return str(reason)


def _last_words(containers: Any) -> str:
    """Returns the last message of a container that ended before: our programs log one JSON object a line."""
    states = (container.get("lastState", {}).get("terminated") for container in containers)
    ended: Json = next((state for state in states if state), {})
    lines = str(ended.get("message") or "").strip().splitlines()
    last = lines[-1] if lines else ""
    try:
        return str(json.loads(last)["message"])
    except (*UNREADABLE_JSON, TypeError, KeyError):
        return last
