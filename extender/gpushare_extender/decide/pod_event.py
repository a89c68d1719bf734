"""A Kubernetes Event about a pod. Pure."""

import hashlib
from datetime import datetime

from gpushare_core.api.event_limits import event_name, event_note
from gpushare_core.api.timestamps import micro_time
from gpushare_core.text.json_object import Json
from gpushare_extender.objects.pod_reference import PodReference

CONTROLLER = "gpushare-extender"


def pod_event(
    pod: PodReference, *, type_: str, reason: str, action: str, note: str, seed: str, now: datetime
) -> Json:
    """Returns an Event of ``events.k8s.io/v1``. ``seed`` makes its name: a repetition collides with the
    first."""
    digest = hashlib.sha256(seed.encode()).hexdigest()[:16]
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": event_name(pod.name, digest), "namespace": pod.namespace},
        "eventTime": micro_time(now),
        "type": type_,
        "reason": reason,
        "note": event_note(note),
        "action": action,
        "reportingController": CONTROLLER,
        "reportingInstance": CONTROLLER,
        "regarding": object_reference(pod),
    }


def object_reference(pod: PodReference) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": pod.namespace,
        "name": pod.name,
        "uid": pod.uid,
    }
