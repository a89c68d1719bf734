"""Kubernetes Events on pods. Pure."""

import hashlib
from dataclasses import dataclass
from datetime import datetime

from gpushare_core.api.event_limits import event_name, event_note
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
    """What it is about, where a pod shall be told of it but once; empty: each is one of its own."""

    def to_json(self, node: str, now: datetime) -> Json:
        """Returns an Event of ``events.k8s.io/v1``. Its name makes a repetition collide with the first."""
        moment = micro_time(now)
        seed = f"{self.uid}/{self.reason}/{self.occasion or f'{self.note}/{moment}'}"
        digest = hashlib.sha256(seed.encode()).hexdigest()[:16]
        name, namespace = self.pod.name, self.pod.namespace
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": event_name(name, digest), "namespace": namespace},
            "eventTime": moment,
            "type": "Warning" if self.warning else "Normal",
            "reason": self.reason,
            "note": event_note(self.note),
            "action": self.action,
            "reportingController": CONTROLLER,
            "reportingInstance": node,
            "regarding": {
                "apiVersion": "v1",
                "kind": "Pod",
                "namespace": namespace,
                "name": name,
                "uid": self.uid,
            },
        }
