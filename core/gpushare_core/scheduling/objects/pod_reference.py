"""A pod by name and UID."""

from dataclasses import dataclass

from gpushare_core.api.events import pod_object
from gpushare_core.text.json_object import Json


@dataclass(frozen=True, slots=True)
class PodReference:
    """A pod that is made anew under the same name has another UID: it is another pod."""

    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        """As logs and messages show a pod."""
        return f"{self.namespace}/{self.name}"

    def to_json(self) -> Json:
        """Returns the pod as an Event refers to it."""
        return pod_object(namespace=self.namespace, name=self.name, uid=self.uid)
