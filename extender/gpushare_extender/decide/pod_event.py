"""A Kubernetes Event about a pod. Pure."""

from datetime import datetime

from gpushare_core.api.events import new_event, pod_object
from gpushare_core.text.json_object import Json
from gpushare_extender.objects.pod_reference import PodReference

CONTROLLER = "gpushare-extender"


def pod_event(
    pod: PodReference,
    *,
    type_: str,
    reason: str,
    action: str,
    note: str,
    seed: str,
    now: datetime,
    related: PodReference | None = None,
) -> Json:
    """Returns the Event; ``seed`` as in ``new_event``."""
    return new_event(
        regarding=_object(pod),
        related=_object(related) if related else None,
        type_=type_,
        reason=reason,
        action=action,
        note=note,
        seed=seed,
        controller=CONTROLLER,
        now=now,
    )


def _object(pod: PodReference) -> Json:
    return pod_object(namespace=pod.namespace, name=pod.name, uid=pod.uid)
