"""What the demo prints: steps with their time, and commands with what they answered."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

Clock = Callable[[], float]


@dataclass(slots=True)
class Console:
    """Writes to stdout as things happen; ``clock`` counts seconds."""

    clock: Clock = time.monotonic
    _begun: float = field(init=False)

    def __post_init__(self) -> None:
        self._begun = self.clock()

    def step(self, text: str) -> None:
        """A heading with the seconds since the start."""
        self._write(f"\n[{self.clock() - self._begun:5.1f} s] {text}")

    def say(self, text: str) -> None:
        for line in text.rstrip("\n").splitlines():
            self._write(f"    {line}")

    def command(self, command: str, answer: str) -> None:
        """A command that the reader can repeat, and its answer."""
        self._write(f"    $ {command}")
        self.say(answer or "(none)")

    def _write(self, text: str) -> None:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
