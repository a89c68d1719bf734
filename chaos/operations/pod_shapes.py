"""What pods ask for and how they behave, as plain values."""

from enum import StrEnum
from random import Random

import msgspec


class Place(StrEnum):
    """Which container of the pod it is."""

    MAIN = "main"
    INIT = "init"
    SIDECAR = "sidecar"
    """An init container that is restarted and goes on."""


class Life(StrEnum):
    """What the pod's process does."""

    STAYS = "stays"
    LINGERS = "lingers"
    """It takes its time to end."""
    ENDS = "ends"
    """It succeeds after a moment."""
    CRASHES = "crashes"
    """It fails after a moment and is started again."""


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """What a container asks for; ``resource`` empty: nothing of ours."""

    place: Place = Place.MAIN
    resource: str = ""
    amount: int = 0


class PodShape(msgspec.Struct, frozen=True, kw_only=True):
    """A pod, but for its name."""

    asks: tuple[Ask, ...]
    life: Life = Life.STAYS
    grace: int = 0
    """Seconds that it may take to end."""
    priority: str = ""
    annotations: dict[str, str] = {}


MEMORY, SLICE, CARD, ALIYUN = (
    "gpushare.io/memory",
    "gpushare.io/slice",
    "gpushare.io/card",
    "aliyun.com/gpu-mem",
)
AMOUNTS = {MEMORY: (1, 2, 3, 4, 6, 8, 12, 16), SLICE: (1, 1, 2), CARD: (1, 1, 2), ALIYUN: (1, 2, 4, 8)}
LIVES = (Life.STAYS,) * 12 + (Life.LINGERS,) * 2 + (Life.ENDS,) * 3 + (Life.CRASHES,)
HIGH = "chaos-high"
"""The priority class of those that preempt."""


def draw_shape(random: Random) -> PodShape:
    resource = random.choices(tuple(AMOUNTS), (10, 3, 2, 3))[0]
    life = random.choice(LIVES)
    return PodShape(
        asks=_asks(random, resource),
        life=life,
        grace=random.choice((3, 6)) if life is Life.LINGERS else random.choice((0, 1, 1)),
        priority=HIGH if random.random() < 0.06 else "",
    )


def _asks(random: Random, resource: str) -> tuple[Ask, ...]:
    """Mostly one container; sometimes several, with ordinary ones beside, before and around."""
    main = _ask(random, resource)
    match random.randint(0, 11):
        case 0:
            return (main, _ask(random, resource))
        case 1:
            return (main, Ask())
        case 2:
            return (_ask(random, resource, Place.INIT), main)
        case 3:
            return (_ask(random, resource, Place.SIDECAR), main)
        case 4:
            return (main, _ask(random, random.choice((MEMORY, SLICE, CARD))))
    return (main,)


def _ask(random: Random, resource: str, place: Place = Place.MAIN) -> Ask:
    return Ask(place=place, resource=resource, amount=random.choice(AMOUNTS[resource]))
