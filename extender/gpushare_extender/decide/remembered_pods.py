"""What is remembered of pods, of a limited number of them."""

from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

V = TypeVar("V")


class RememberedPods(OrderedDict[str, V]):
    """By pod UID, in the order in which pods were remembered last. Use from one thread."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def remember(self, uid: str, value: V) -> tuple[str, V] | None:
        """Returns what is forgotten for it: the pod remembered longest ago, where there are too many."""
        self[uid] = value
        self.move_to_end(uid)
        return self.popitem(last=False) if len(self) > self.most else None

    def forget_while(self, is_old: Callable[[V], bool]) -> None:
        """Forgets the pods remembered longest ago as long as they are old."""
        while self and is_old(next(iter(self.values()))):
            self.popitem(last=False)
