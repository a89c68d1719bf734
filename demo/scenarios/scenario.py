"""A scenario: a policy to apply, and what happens then."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

from demo.stage import Stage

SAMPLES = Path(__file__).resolve().parent.parent.parent / "config" / "samples"


class Scenario(ABC):
    """One mode of sharing, played."""

    mode: ClassVar[str]
    policy: ClassVar[Path]
    """Of ``config/samples``."""
    policy_text: ClassVar[str]
    """The policy in one line."""
    waiting_pod: ClassVar[str] = ""
    """The pod that still waits at the end; empty when none does."""
    workers: ClassVar[int] = 1

    @abstractmethod
    def play(self, stage: Stage) -> None:
        """Places pods. Raises ``DemoFailedError`` when a promise is broken."""
