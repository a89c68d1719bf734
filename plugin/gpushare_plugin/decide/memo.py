"""The last answer of a pure function: where nothing has changed nothing is worked out again."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(slots=True)
class LastAnswer(Generic[T]):
    """Keeps one answer with all that it followed from."""

    _same: tuple[object, ...] = ()
    _equal: tuple[object, ...] = ()
    _answers: tuple[T, ...] = field(default=())
    """One at most."""

    def to(self, same: tuple[object, ...], equal: tuple[object, ...], *, decide: Callable[[], T]) -> T:
        """Returns what ``decide`` does, without asking it again where all that it follows from is as it was:
        the very objects that ``same`` has, and what ``equal`` has. Nobody may change any of them afterwards.
        """
        if not (self._answers and _are_same(same, self._same) and equal == self._equal):
            self._answers, self._same, self._equal = (decide(),), same, equal
        return self._answers[0]


def _are_same(now: tuple[object, ...], before: tuple[object, ...]) -> bool:
    return len(now) == len(before) and all(one is other for one, other in zip(now, before, strict=True))
