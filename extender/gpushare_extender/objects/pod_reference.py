"""A pod by name and UID."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PodReference:
    """A pod that is made anew under the same name has another UID: it is another pod."""

    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        """As logs and messages show a pod."""
        return f"{self.namespace}/{self.name}"
