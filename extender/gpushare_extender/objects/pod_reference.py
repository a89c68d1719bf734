"""Which pod is meant."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PodReference:
    """A pod by its name and UID: a pod that is made anew under the same name is another one."""

    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        """Returns ``namespace/name``, as logs and messages show a pod."""
        return f"{self.namespace}/{self.name}"
