"""What pure functions returned: as long as what they were given is as before nothing is decided again."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
S = TypeVar("S")
T = TypeVar("T")


@dataclass(slots=True)
class Memo(Generic[T]):
    """The results of one pure function for the snapshots of the last call, each under a key.

    Snapshots are compared by ``==``: a snapshot has all that the result follows from, equal ones differ in
    nothing of that, and nobody changes one. A result that equals the one before is that very object, so that
    snapshots with it compare fast.
    """

    _known: dict[Hashable, tuple[object, T]] = field(default_factory=dict)

    def value(self, snapshot: S, decide: Callable[[S], T]) -> T:
        """Returns ``decide`` of the only snapshot."""
        (found,) = self.values({None: snapshot}, decide)
        return found

    def values(
        self,
        snapshots: Mapping[K, S],
        decide: Callable[[S], T],
        *,
        keep: Callable[[T], bool] = lambda _: True,
    ) -> list[T]:
        """Returns ``decide`` of each snapshot. ``keep``: whether a result may be returned again."""
        found: dict[Hashable, tuple[object, T]] = {}
        for key, snapshot in snapshots.items():
            known = self._known.get(key)
            if known is None or known[0] != snapshot:
                result = decide(snapshot)
                known = snapshot, known[1] if known and known[1] == result else result
            found[key] = known
        self._known = {key: known for key, known in found.items() if keep(known[1])}
        return [result for _, result in found.values()]
