"""A pod as a simulated kubelet knows it: what its books have of it, and what its containers run with."""

from dataclasses import dataclass, field

from tests.fakes.books import Given

from gpushare_core.placement.requests import PodRequest
from gpushare_core.text.json_object import Json

FINISHED = ("Succeeded", "Failed")
PATIENCE = 4
"""Refusals in a row after which a container is not waited for any more."""


@dataclass(slots=True)
class KnownPod:
    """A pod that the kubelet has admitted, or is admitting."""

    body: Json
    request: PodRequest
    held: dict[str, list[Given]] = field(default_factory=dict)
    """Container -> what its books have."""
    seen: dict[str, list[Given]] = field(default_factory=dict)
    """Container -> what its process was started with: that no checkpoint changes."""
    is_running: bool = False
    is_half_admitted: bool = False
    """Whether the kubelet went away in the middle: it gives the other containers theirs when it is back."""
    down: set[str] = field(default_factory=set)
    """Containers that have ended and are to start once more."""
    bare: set[str] = field(default_factory=set)
    """Containers that were started once more without units: before any plugin had registered."""
    failing: set[str] = field(default_factory=set)
    """Those of ``down`` that could not be started a moment ago."""
    refusals: int = 0
    """How often in a row."""
    is_admitted_again: bool = False
    """Whether a kubelet that has started admits it once more, for containers that do not run."""
    ending: bool = False

    @property
    def uid(self) -> str:
        return str(self.body["metadata"]["uid"])

    @property
    def name(self) -> tuple[str, str]:
        return name_of(self.body)

    def forgotten(self) -> dict[str, list[Given]]:
        """Returns container -> what it was given, and runs with, and the kubelet knows nothing of."""
        return {name: given for name, given in self.seen.items() if name not in self.held}

    def lacking(self) -> set[str]:
        """Returns the containers that had units, do not run with them any more, and were given none again."""
        return (self.down | self.bare) - self.held.keys()

    @property
    def is_starting(self) -> bool:
        """Whether a container may yet be started: it was not refused several times in a row."""
        return self.is_admitted_again or (bool(self.down) and self.refusals < PATIENCE)


def name_of(body: Json) -> tuple[str, str]:
    return body["metadata"]["namespace"], body["metadata"]["name"]


def is_over(body: Json) -> bool:
    return body["status"].get("phase") in FINISHED
