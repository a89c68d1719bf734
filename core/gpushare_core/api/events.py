"""Events of ``events.k8s.io/v1``. Pure.

The API server refuses an Event that is too long as a whole. Source: ``ValidateEventCreate`` of
``k8s.io/kubernetes/pkg/apis/core/validation``.
"""

import hashlib
from datetime import datetime

from gpushare_core.api.timestamps import micro_time
from gpushare_core.text.json_object import Json
from gpushare_core.text.printable import printable

MAX_NAME = 253
MAX_NOTE = 1024
"""Bytes."""
CLUSTER_NAMESPACE = "default"
"""Where Events about cluster-scoped objects live."""


def new_event(
    *,
    regarding: Json,
    related: Json | None = None,
    type_: str,
    reason: str,
    action: str,
    note: str,
    seed: str,
    controller: str,
    instance: str = "",
    now: datetime,
) -> Json:
    """``regarding`` and ``related`` are object references, see ``pod_object``. The name of the Event follows
    from ``seed``, so that a repetition collides with the first. ``instance``: the controller where empty."""
    digest = hashlib.sha256(seed.encode()).hexdigest()[:16]
    namespace = regarding.get("namespace", CLUSTER_NAMESPACE)
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": event_name(regarding["name"], digest), "namespace": namespace},
        "eventTime": micro_time(now),
        "type": type_,
        "reason": reason,
        "note": event_note(note),
        "action": action,
        "reportingController": controller,
        "reportingInstance": instance or controller,
        "regarding": regarding,
    }
    return {**event, "related": related} if related else event


def pod_object(*, namespace: str, name: str, uid: str) -> Json:
    """Returns the reference to a pod."""
    return {"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": name, "uid": uid}


def event_name(regarding: str, digest: str) -> str:
    """Returns as much of the object's name as fits, and the digest."""
    beginning = regarding[: MAX_NAME - len(digest) - 1]
    return f"{beginning.rstrip('.-')}.{digest}"


def event_note(text: str) -> str:
    """Returns as much of ``text`` as fits, printable."""
    return printable(text, max_bytes=MAX_NOTE)
