"""What is being done, for somebody who waits at a terminal."""

from typing import Protocol

DELAY_SECONDS = 1.0
"""What is done by then says nothing."""


class ProgressLine(Protocol):
    """Shows on stderr what is being done, from ``DELAY_SECONDS`` after its first call on."""

    def doing(self, what: str) -> None:
        """Replaces the previous text. ``what``: such as ``reading 5,000 GPUShareNodes``."""


class Silence:
    """Shows nothing: nobody waits at a pipe."""

    def doing(self, what: str) -> None: ...
