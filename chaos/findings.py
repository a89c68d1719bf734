"""What was found that may not be."""

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Finding:
    """``rule``: which promise it breaks, I1 to I7, or ``quiet`` or ``model``."""

    rule: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.sentence}"


@dataclass(slots=True)
class Findings:
    """Each one once. ``collect``: go on after the first one."""

    say: Callable[[str], None]
    collect: bool = False
    all: list[Finding] = field(default_factory=list)

    def add(self, finding: Finding) -> None:
        if finding not in self.all:
            self.all.append(finding)
            self.say(f"DIFFERENCE {finding}")

    @property
    def are_enough(self) -> bool:
        return bool(self.all) and not self.collect
