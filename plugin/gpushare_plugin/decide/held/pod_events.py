"""Kubernetes Events on pods. Pure."""

from dataclasses import dataclass
from datetime import datetime

from gpushare_core.api.events import new_event, pod_object
from gpushare_core.api.timestamps import micro_time
from gpushare_core.text.json_object import Json
from gpushare_plugin.decide.held.pods import PodName

CONTROLLER = "gpushare-plugin"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodEvent:
    """Something that people who look at a pod have to know."""

    pod: PodName
    uid: str
    reason: str
    note: str
    warning: bool = False
    action: str = "Measuring"
    occasion: str = ""
    """What the Event is about, where a pod has one Event about that at most; empty: each is a new one."""

    def to_json(self, node: str, now: datetime) -> Json:
        """Returns the Event. Its name makes a repetition collide with the first."""
        return new_event(
            regarding=pod_object(namespace=self.pod.namespace, name=self.pod.name, uid=self.uid),
            type_="Warning" if self.warning else "Normal",
            reason=self.reason,
            action=self.action,
            note=self.note,
            seed=f"{self.uid}/{self.reason}/{self.occasion or f'{self.note}/{micro_time(now)}'}",
            controller=CONTROLLER,
            instance=node,
            now=now,
        )
