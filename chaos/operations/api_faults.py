"""The API server fails our programs: all of them, one of them, or those of one node; for a few seconds.

kubelets, kube-scheduler and chaos itself reach it past the proxy; where the server itself is down, nobody
does.
"""

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from random import Random
from typing import Any

import msgspec

from chaos.operation import Fault, Kind, NothingHitError, Operation
from chaos.plan.known import CONTROL_PLANES, WORKERS, Known
from chaos.proxy.fault import ApiFault, Manner
from chaos.world import World
from gpushare_core.api.enums import Engine

OPERATOR, PLUGIN, EXTENDER = "gpushare-operator", "gpushare-plugin", "gpushare-extender"
SCHEDULER = "gpushare-scheduler"
"""In place of the extender where kube-scheduler has the plugin."""
PROGRAMS: tuple[tuple[str, ...], ...] = ((), (OPERATOR,), (PLUGIN,), (EXTENDER,), (PLUGIN, EXTENDER))
"""Our ServiceAccounts; none stands for whoever asks."""
SECONDS = (1.0, 2.0, 4.0, 8.0, 16.0)
LATENCY = (0.2, 0.5, 1.0, 2.0, 4.0)
"""The extender relies on a Binding having arrived 12 s after it was sent."""
SHARES = (1, 1, 2, 3)
"""Every how manieth call is hit."""
STATUSES = (429, 429, 500, 503, 504, 409, 403, 410)
BINDING = "/binding$"
HANG_SECONDS = 100.0
"""Until every program has noticed a dead watch by itself: 90 s without a bookmark, and some more."""
HIT_SECONDS = 0.5
"""For every open watch to be hit."""


class _ApiFault(Fault, frozen=True, kw_only=True):
    fault: ApiFault

    @property
    def _key(self) -> str:
        return f"api/{id(self)}"

    async def run(self, world: World) -> None:
        world.facts[self._key] = await world.api_proxy.begin(with_engine(self.fault, world.engine))

    async def heal(self, world: World) -> None:
        """Nobody may have asked for what it breaks meanwhile."""
        number = world.facts.pop(self._key, None)
        if number is not None and not await world.api_proxy.end(number) and not self._needs_no_call:
            raise NothingHitError

    @property
    def _needs_no_call(self) -> bool:
        """Whether it resets all connections by itself, without waiting for requests."""
        return self.fault.manner is Manner.REFUSED


def with_engine(fault: ApiFault, engine: Engine) -> ApiFault:
    """Returns ``fault`` for the programs that run with ``engine``.

    Watches of kube-scheduler are not hung: what notices a dead connection is HTTP/2, which the proxy does not
    speak.
    """
    if engine is Engine.EXTENDER:
        return fault
    if fault.manner is Manner.HUNG:
        programs = tuple(name for name in fault.programs or (OPERATOR, PLUGIN) if name != EXTENDER)
        return msgspec.structs.replace(fault, programs=programs or (OPERATOR, PLUGIN))
    programs = tuple(SCHEDULER if name == EXTENDER else name for name in fault.programs)
    return msgspec.structs.replace(fault, programs=programs)


class Refused(_ApiFault, frozen=True, kw_only=True, tag="api.refused"):
    """Nothing listens at the API server's address in the pods' network, and all connections are reset."""


class Reset(_ApiFault, frozen=True, kw_only=True, tag="api.reset"):
    """Connections are reset by calls."""


class Silent(_ApiFault, frozen=True, kw_only=True, tag="api.silent"):
    """Nothing is answered, and open watches carry nothing."""


class Slow(_ApiFault, frozen=True, kw_only=True, tag="api.slow"):
    """Calls are carried out late and answered slowly."""


class Status(_ApiFault, frozen=True, kw_only=True, tag="api.status"):
    """Calls are refused with an error."""


class WatchesClosed(_ApiFault, frozen=True, kw_only=True, tag="api.watches-closed"):
    """Every watch ends at once."""


class WatchesExpired(_ApiFault, frozen=True, kw_only=True, tag="api.watches-expired"):
    """Every watch says that its resource version is too old, or another error, and ends."""


class WatchesHung(_ApiFault, frozen=True, kw_only=True, tag="api.watches-hung"):
    """Open watches carry no more events, and no side is told, as after a firewall forgets connections. The
    fault ends when every program has noticed."""

    async def run(self, world: World) -> None:
        await super().run(world)
        await asyncio.sleep(HIT_SECONDS)
        await self.heal(world)


class Truncated(_ApiFault, frozen=True, kw_only=True, tag="api.truncated"):
    """Responses end half-way, though the request was carried out; watches end within an event."""


class LostAnswer(_ApiFault, frozen=True, kw_only=True, tag="api.lost-answer"):
    """Writes are carried out and their answers lost."""


class EventsTwice(_ApiFault, frozen=True, kw_only=True, tag="api.events-twice"):
    """Watches tell everything twice."""


class EventsLate(_ApiFault, frozen=True, kw_only=True, tag="api.events-late"):
    """Watches tell everything late."""


Parameters = dict[str, Any]
"""Of an ``ApiFault``, beside its manner."""


def _anybody(random: Random) -> Parameters:
    """Whose calls are hit."""
    if random.random() < 0.15:  # all that runs on one node
        return {"nodes": (random.choice((*WORKERS, *CONTROL_PLANES)),)}
    return {"programs": random.choice(PROGRAMS)}


def _some(random: Random) -> Parameters:
    return {**_anybody(random), "every": random.choice(SHARES)}


def _nothing(_: Random) -> Parameters:
    return {}


def _late(random: Random) -> Parameters:
    return {**_anybody(random), "seconds": random.choice(LATENCY)}


def _status(random: Random) -> Parameters:
    status = random.choice(STATUSES)
    after = random.choice((0, 1, 2)) if status == HTTPStatus.TOO_MANY_REQUESTS else 0
    return {**_some(random), **_verbs(random), "status": status, "retry_after": after}


def _verbs(random: Random) -> Parameters:
    verbs: tuple[tuple[str, ...], ...] = ((), (), ("list", "watch"), ("create",), ("patch",), ("get",))
    return {"verbs": random.choice(verbs)}


def _expired(random: Random) -> Parameters:
    return {**_anybody(random), "status": random.choice((410, 410, 410, 500, 429))}


def _lost(random: Random) -> Parameters:
    """Mostly Bindings: what else is written can be written again."""
    path = random.choice(("", BINDING, BINDING))
    return {"path": path, "every": random.choice(SHARES)} if path else _some(random)


def _kind(
    operation: type[_ApiFault],
    manner: Manner,
    weight: float,
    parameters: Callable[[Random], Parameters],
    **more: Any,
) -> Kind:
    def draw(random: Random, _: Known) -> Operation:
        fault = msgspec.structs.replace(ApiFault(manner=manner), **parameters(random))
        return operation(fault=fault, seconds=random.choice(SECONDS))

    return Kind(operation=operation, weight=weight, draw=draw, **more)


def draw_hung(random: Random, _: Known) -> Operation:
    fault = ApiFault(manner=Manner.HUNG, verbs=("watch",), programs=random.choice(PROGRAMS))
    return WatchesHung(fault=fault, seconds=HANG_SECONDS)


KINDS = (
    _kind(Refused, Manner.REFUSED, 1, _nothing),
    _kind(Reset, Manner.RESET, 1, _some),
    _kind(Silent, Manner.SILENT, 1, _anybody),
    _kind(Slow, Manner.SLOW, 1, _late),
    _kind(Status, Manner.STATUS, 3, _status),
    _kind(WatchesClosed, Manner.CLOSED, 1, _anybody),
    _kind(WatchesExpired, Manner.EXPIRED, 1, _expired),
    Kind(operation=WatchesHung, weight=0.5, draw=draw_hung, at_most=2),
    _kind(Truncated, Manner.TRUNCATED, 1, _some),
    _kind(LostAnswer, Manner.LOST_ANSWER, 2, _lost),
    _kind(EventsTwice, Manner.TWICE, 0.5, _anybody),
    _kind(EventsLate, Manner.LATE, 1, _late),
)
