"""How pods are read: our own, and those that wait for a scheduler."""

import json
from typing import Any

from gpushare_core.api.names import COMPONENT_LABEL, POLICY_LABEL, VERSION_LABEL
from gpushare_core.dialects.table import RESOURCES, SHARED_RESOURCES
from gpushare_core.placement.requests import read_request
from gpushare_core.text.json_object import UNREADABLE_JSON, Json
from gpushare_operator.cluster.labels import EXTENDER, JOB_NAME_LABEL, PORT_ANNOTATION, read_ports
from gpushare_operator.cluster.object_parts import is_condition_true, is_deleting, read_time
from gpushare_operator.cluster.objects import PodObject

STARTING = ("ContainerCreating", "PodInitializing")
"""Reasons of a container that waits while its kubelet prepares the pod."""


OWN_RESOURCES = {name: resource for name, resource in RESOURCES.items() if name not in SHARED_RESOURCES}
"""Resources that only we offer, in any dialect."""


def read_pod(body: Json) -> PodObject:
    """A mirror pod is not ours, whatever its labels say: its kubelet chooses them. A kubelet can make no
    other pods, and cannot make a mirror pod look like another pod."""
    metadata, status = body["metadata"], body.get("status", {})
    labels = {} if is_static(body) else metadata.get("labels", {})
    # In this order: the later containers wait for the earlier ones.
    initial = status.get("initContainerStatuses") or ()
    containers = [*initial, *(status.get("containerStatuses") or ())]
    own = [
        container for container in containers if container.get("name") == labels.get(COMPONENT_LABEL)
    ] or containers
    terminated = _container_state(own, "terminated")
    spec = body.get("spec", {})
    return PodObject(
        name=metadata["name"],
        component=labels.get(COMPONENT_LABEL, ""),
        policy=labels.get(POLICY_LABEL, ""),
        job=labels.get(JOB_NAME_LABEL, ""),
        node=spec.get("nodeName", ""),
        ready=is_condition_true(status, "Ready") and not is_deleting(body),
        started=read_time(_container_state(own, "running").get("startedAt")),
        exit_code=terminated.get("exitCode"),
        ended=read_time(terminated.get("finishedAt")),
        is_held_open=bool(terminated and _container_state(containers, "running")),
        termination=(terminated or _failed_state(initial)).get("message", ""),
        waiting=_why_waiting(_container_state(containers, "waiting"), metadata),
        last_words=_last_words(containers),
        extender_ports=read_ports((metadata.get("annotations") or {}).get(PORT_ANNOTATION, "")),
        runs_extender=any(container.get("name") == EXTENDER for container in spec.get("containers") or ()),
        version=labels.get(VERSION_LABEL, ""),
    )


def _container_state(containers: Any, kind: str) -> Json:
    """Returns the first state of that kind; empty when no container has one."""
    states = (container.get("state", {}).get(kind) for container in containers)
    return next((state for state in states if state), {})


def _failed_state(containers: Any) -> Json:
    """Returns the state of the first container that ended in an error; empty without one."""
    states = (container.get("state", {}).get("terminated") for container in containers)
    return next((state for state in states if state and state.get("exitCode")), {})


def _why_waiting(state: Json, metadata: Json) -> str:
    """What delays a pod before its first container starts, such as a folder that cannot be mounted, is only
    in its kubelet's Events."""
    reason, message = state.get("reason", ""), state.get("message", "")
    if message:
        return f"{reason}: {message}"
    if reason in STARTING:
        where = f"kubectl -n {metadata['namespace']} describe pod {metadata['name']}"
        return f"{reason}; {where} says what it waits for"
    return str(reason)


def _last_words(containers: Any) -> str:
    """Returns the last message of a container that ended before. Our programs log one JSON object a line."""
    states = (container.get("lastState", {}).get("terminated") for container in containers)
    ended: Json = next((state for state in states if state), {})
    lines = str(ended.get("message") or "").strip().splitlines()
    last = lines[-1] if lines else ""
    try:
        return str(json.loads(last)["message"])
    except (*UNREADABLE_JSON, TypeError, KeyError):
        return last


def read_pod_without_scheduler(body: Json) -> str:
    """Returns a pod's ``NAMESPACE/NAME`` if it asks for cards and waits for its scheduler, else ""."""
    metadata, spec = body["metadata"], body.get("spec") or {}
    asks = read_request(spec, OWN_RESOURCES).resources
    if spec.get("schedulingGates") or is_deleting(body) or not asks:
        return ""
    return f"{metadata['namespace']}/{metadata['name']}"


def is_static(body: Json) -> bool:
    """Whether it is a mirror pod, by which a kubelet shows a manifest on its host."""
    return "kubernetes.io/config.mirror" in (body["metadata"].get("annotations") or {})
