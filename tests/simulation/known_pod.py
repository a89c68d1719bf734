"""A pod of a simulated kubelet: its entries in the kubelet's books, and what its containers run with."""

from dataclasses import dataclass, field

from tests.fakes.books import Given

from gpushare_core.placement.requests import PodRequest
from gpushare_core.text.json_object import Json

FINISHED = ("Succeeded", "Failed")
PATIENCE = 4
"""Refusals in a row after which the simulation does not wait for a container any more."""


@dataclass(slots=True)
class KnownPod:
    """A pod that the kubelet has admitted, or is admitting."""

    body: Json
    request: PodRequest
    held: dict[str, list[Given]] = field(default_factory=dict)
    """Container -> what its books have."""
    seen: dict[str, list[Given]] = field(default_factory=dict)
    """Container -> environment of its process, which no checkpoint changes."""
    is_running: bool = False
    is_half_admitted: bool = False
    """Whether the kubelet stopped during the admission: it gives the other containers their units when it is
    back."""
    down: set[str] = field(default_factory=set)
    """Containers that have ended and are to start once more."""
    bare: set[str] = field(default_factory=set)
    """Containers that were restarted without units, before any plugin had registered."""
    failing: set[str] = field(default_factory=set)
    """Those of ``down`` that could not be started a moment ago."""
    refusals: int = 0
    """How often in a row."""
    is_admitted_again: bool = False
    """Whether a restarted kubelet admits the pod again, for containers that do not run."""
    ending: bool = False

    @property
    def uid(self) -> str:
        return str(self.body["metadata"]["uid"])

    @property
    def name(self) -> tuple[str, str]:
        return name_of(self.body)

    def forgotten(self) -> dict[str, list[Given]]:
        """Returns container -> units that it runs with and the kubelet has forgotten."""
        return {name: given for name, given in self.seen.items() if name not in self.held}

    def lacking(self) -> set[str]:
        """Returns the containers that had units, no longer run with them, and were given none again."""
        return (self.down | self.bare) - self.held.keys()

    @property
    def is_starting(self) -> bool:
        """Whether a container may yet be started: it was not refused several times in a row."""
        return self.is_admitted_again or (bool(self.down) and self.refusals < PATIENCE)


def name_of(body: Json) -> tuple[str, str]:
    return body["metadata"]["namespace"], body["metadata"]["name"]


def is_over(body: Json) -> bool:
    return body["status"].get("phase") in FINISHED
