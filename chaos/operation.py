"""What is done to the cluster: operations, faults, and the rows that say how each kind is drawn."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from chaos.plan.known import Known
    from chaos.world import World


class NothingHitError(Exception):
    """The operation found nothing to act on: a fault that hits nothing shows nothing."""


class BreachError(Exception):
    """The operation itself has seen a breach: the text says what, ``rule`` which promise is broken."""

    def __init__(self, rule: str, sentence: str) -> None:
        super().__init__(sentence)
        self.rule = rule


class Operation(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """An operation, run once. Subclasses have plain values as fields, and their kind as ``tag``."""

    @property
    def kind(self) -> str:
        return str(type(self).__struct_config__.tag)

    @property
    def touches(self) -> frozenset[str]:
        """What no other operation of the round may touch, such as ``node/gpu-1``."""
        return frozenset()

    async def run(self, world: "World") -> None:
        """Does it, and returns when it is done or asked for; not when its effects are over.

        An ``ApiError`` is an answer, and ``UnreachableError`` happens while the API server is away: both are
        counted and the run goes on; so is ``NothingHitError``. ``BreachError`` is a finding. Any other
        exception ends the run, with a finding.
        """
        raise NotImplementedError

    def note(self, known: "Known") -> None:
        """Has the plan know what was ordered."""


class Fault(Operation, frozen=True, kw_only=True):
    """A fault, which ends with ``heal``.

    How long the books take to agree is reported by kind. A fault that ends by itself, such as a killed
    process, has ``seconds`` 0 and nothing to heal.
    """

    seconds: float = 0.0
    """How long the fault lasts before it is healed; at most until the round's other operations are done."""

    async def heal(self, world: "World") -> None:
        """Ends it. Called once after every ``run`` that began, though it may have failed half-way.

        Raises ``NothingHitError`` where it only now shows that nothing was hit, and another error only where
        the fault cannot be ended: the run ends then.
        """


def always(_: "Known") -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A row of the table."""

    operation: type[Operation]
    weight: float
    """How often among the kinds of its family: faults, and all others."""
    draw: Callable[[Random, "Known"], Operation]
    """Called only where ``possible``."""
    possible: Callable[["Known"], bool] = always
    """Whether what is known so far allows it."""
    at_most: int = 1_000_000
    """In a whole history: for what costs much."""

    @property
    def name(self) -> str:
        return str(self.operation.__struct_config__.tag)

    @property
    def is_fault(self) -> bool:
        return issubclass(self.operation, Fault)
