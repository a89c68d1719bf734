"""Kubernetes Events of a preemption, on the pods concerned. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from gpushare_core.api.events import new_event
from gpushare_core.api.timestamps import micro_time
from gpushare_core.scheduling.objects.pod_reference import PodReference
from gpushare_core.text.json_object import Json
from gpushare_extender import PROGRAM

PREEMPTING, PREEMPTED, REFUSED = "Preempting", "Preempted", "PreemptionRefused"
"""Reasons."""


@dataclass(frozen=True, slots=True)
class PreemptionEvent:
    """What people who look at a pod have to know of a preemption."""

    pod: PodReference
    reason: str
    note: str
    related: PodReference | None = None

    def to_json(self, now: datetime) -> Json:
        return new_event(
            regarding=self.pod.to_json(),
            related=self.related.to_json() if self.related else None,
            type_="Warning" if self.reason == REFUSED else "Normal",
            reason=self.reason,
            action="Preempting",
            note=self.note,
            seed=f"{self.pod.uid}/{self.reason}/{self.note}/{micro_time(now)}",
            controller=PROGRAM,
            now=now,
        )


def preempting(
    preemptor: PodReference, victims: Sequence[PodReference], *, node: str, cards: Sequence[str]
) -> PreemptionEvent:
    """Tells the pod which others were evicted for it, and where."""
    evicted = ", ".join(map(str, victims))
    note = f"evicted {evicted} to free {' and '.join(cards)} on node {node}, kept for this pod"
    return PreemptionEvent(preemptor, PREEMPTING, note)


def preempted(victim: PodReference, preemptor: PodReference, *, node: str) -> PreemptionEvent:
    """Tells the victim why it was evicted; the beginning is kube-scheduler's own wording."""
    why = f"{preemptor} has a higher priority and needs the card"
    note = f"Preempted by pod {preemptor.uid} on node {node}: {why}"
    return PreemptionEvent(victim, PREEMPTED, note, related=preemptor)


def refused(preemptor: PodReference, victim: PodReference, *, why: str) -> PreemptionEvent:
    """Tells the pod which other one could not be evicted for it."""
    note = f"pod {victim} was not evicted for this pod: {why}"
    return PreemptionEvent(preemptor, REFUSED, note, related=victim)
