"""What a plan knows: what it has ordered itself, never what came of it."""

from collections import Counter
from dataclasses import dataclass, field

WORKERS = ("gpu-1", "gpu-2", "gpu-3")
CONTROL_PLANES = ("control-plane-1", "control-plane-2")


@dataclass(slots=True)
class Known:
    """Changed by every operation that is drawn, in order."""

    pods: dict[str, str] = field(default_factory=dict)
    """Name of each pod that was created and not deleted since -> how, for operations that delete it."""
    owners: dict[str, str] = field(default_factory=dict)
    """Name of each controller -> its kind."""
    policies: dict[str, str] = field(default_factory=dict)
    """Name of each policy in force -> what is special about it, for operations that change it."""
    notes: dict[str, str] = field(default_factory=dict)
    """Of families, by keys that begin with the name of the family."""
    counts: Counter[str] = field(default_factory=Counter)
    """How often each kind was drawn."""
    touched: set[str] = field(default_factory=set)
    """What this round's operations touch."""
    _names: Counter[str] = field(default_factory=Counter)

    def new_name(self, prefix: str) -> str:
        """Returns a name that was never used."""
        self._names[prefix] += 1
        return f"{prefix}-{self._names[prefix]}"
