"""Cards fail, vanish, return, are renumbered, cordoned and exchanged: those that the policy simulates.

A card that is sick or cordoned takes nobody new, and those on it stay: nothing may differ meanwhile.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any

from chaos.operation import Fault, Kind, NothingHitError, Operation
from chaos.plan.known import WORKERS, Known
from chaos.policies import CARDS
from chaos.world import World
from gpushare_core.api.names import CLEAR_FAULT_ANNOTATION, CORDON_ANNOTATION, SIMULATE_ANNOTATION
from gpushare_core.kube.errors import ApiError
from gpushare_core.kube.paths import POLICIES, SHARE_NODES
from gpushare_core.text.json_object import Json

LASTS = (1.0, 8.0)
"""Seconds."""
XIDS = (79, 48, 31, 94)
"""Fallen off the bus, an error of memory twice, a fault of the application, a contained error."""
SIZES = ("8Gi", "12Gi", "20Gi", "16Gi")
CLEARING = 15.0
"""Seconds until the plugin has noticed, at the latest, that a card is healthy and may be cleared."""


class _Cards(Fault, frozen=True, kw_only=True):
    node: str

    @property
    def touches(self) -> frozenset[str]:
        return frozenset({f"cards/{self.node}"})


class _Simulated(_Cards, frozen=True, kw_only=True):
    words: str
    """Of the annotation ``gpushare.io/simulate``."""

    async def run(self, world: World) -> None:
        if not await annotate(world, self.node, SIMULATE_ANNOTATION, self.words):
            raise NothingHitError("the node has no GPUShareNode")

    async def heal(self, world: World) -> None:
        await annotate(world, self.node, SIMULATE_ANNOTATION, None)
        await clear_faults(world, self.node)


class FailCards(_Simulated, frozen=True, kw_only=True, tag="card.fail"):
    """Cards report that they are not healthy."""


class VanishCards(_Simulated, frozen=True, kw_only=True, tag="card.vanish"):
    """Cards are no longer found."""


class ShiftCards(_Simulated, frozen=True, kw_only=True, tag="card.shift"):
    """All cards have other indices."""


class HangDriver(_Simulated, frozen=True, kw_only=True, tag="card.driver-hung"):
    """The driver does not answer."""


class ReportXids(_Simulated, frozen=True, kw_only=True, tag="card.xid"):
    """The driver reports errors of cards."""


class MixTroubles(_Simulated, frozen=True, kw_only=True, tag="card.mixed"):
    """Several of these at once."""


class CordonCards(_Cards, frozen=True, kw_only=True, tag="card.cordon"):
    """People take cards out of use, by their indices."""

    indices: str

    async def run(self, world: World) -> None:
        await annotate(world, self.node, CORDON_ANNOTATION, self.indices)

    async def heal(self, world: World) -> None:
        await annotate(world, self.node, CORDON_ANNOTATION, None)


class ExchangeCards(_Cards, frozen=True, kw_only=True, tag="card.exchange"):
    """The policy simulates other cards: more, fewer, larger, smaller; then the first ones again."""

    simulated: tuple[Mapping[str, Any], ...]

    @property
    def touches(self) -> frozenset[str]:
        return frozenset({f"cards/{self.node}", "policies"})

    async def run(self, world: World) -> None:
        key = f"cards/{self.node}"
        world.facts.pop(key, None)
        for policy in (await world.client.get(POLICIES))["items"]:
            if before := simulated_cards(policy, self.node):
                world.facts[key] = before
                await self._simulate(world, policy, self.simulated)
        if key not in world.facts:
            raise NothingHitError("no policy simulates cards there")

    async def heal(self, world: World) -> None:
        before = world.facts.pop(f"cards/{self.node}", None)
        for policy in (await world.client.get(POLICIES))["items"] if before else ():
            if simulated_cards(policy, self.node):
                await self._simulate(world, policy, before)

    async def _simulate(self, world: World, policy: Json, cards: Sequence[Mapping[str, Any]]) -> None:
        rules = with_simulated(policy, self.node, cards)
        await world.client.merge(f"{POLICIES}/{policy['metadata']['name']}", {"spec": {"nodes": rules}})


def simulated_cards(policy: Json, node: str) -> Sequence[Mapping[str, Any]]:
    """Returns the cards that ``policy`` simulates on ``node``; none with another source of cards."""
    found = (rule["devices"].get("simulated", ()) for rule in rules_of(policy, node))
    return next((cards for cards in found if cards), ())


def with_simulated(policy: Json, node: str, cards: Sequence[Mapping[str, Any]]) -> list[Json]:
    """Returns the policy's rules with other cards on ``node``."""
    return [
        {**rule, "devices": {**rule["devices"], "simulated": list(cards)}}
        if rule in rules_of(policy, node)
        else rule
        for rule in policy["spec"]["nodes"]
    ]


def rules_of(policy: Json, node: str) -> list[Json]:
    return [
        rule
        for rule in policy["spec"]["nodes"]
        if node in rule.get("names", ()) and rule.get("devices", {}).get("source") == "Simulated"
    ]


async def annotate(world: World, node: str, key: str, value: str | None) -> bool:
    """Returns False for a deleted GPUShareNode, whose annotations are gone with it."""
    try:
        await world.client.merge(f"{SHARE_NODES}/{node}", {"metadata": {"annotations": {key: value}}})
    except ApiError as error:
        if error.status != 404:
            raise
        return False
    return True


async def clear_faults(world: World, node: str) -> None:
    """Clears, as an administrator may, faults that would keep cards unavailable for ten minutes and more."""
    try:
        async with asyncio.timeout(CLEARING):
            while words := sorted(clearances(await share_node(world, node))):
                await annotate(world, node, CLEAR_FAULT_ANNOTATION, ",".join(words))
                await asyncio.sleep(0.5)
    except TimeoutError:  # another fault of the round keeps the plugin from it: the card stays sick, no more
        return


async def share_node(world: World, node: str) -> Json:
    try:
        return await world.client.get(f"{SHARE_NODES}/{node}")
    except ApiError as error:
        if error.status != 404:
            raise
        return {}


def clearances(share_node: Json) -> Iterator[str]:
    for fault in share_node.get("status", {}).get("faults", ()):
        if not fault.get("cleared"):
            yield f"{fault['uuid']}@{fault['lastSeen']}"


Draw = Callable[[Random, Known], Operation]


def fail(random: Random) -> str:
    return f"fail={indices(random, most=2)}"


def vanish(random: Random) -> str:
    return f"vanish={indices(random, most=2)}"


def shift(random: Random) -> str:
    return f"shift={random.randint(1, CARDS - 1)}"


def hang(_: Random) -> str:
    return "driver=hung"


def xid(random: Random) -> str:
    events = (f"{random.randrange(CARDS)}:{random.choice(XIDS)}" for _ in range(random.randint(1, 2)))
    repair = f" repair={random.randrange(CARDS)}" if random.random() < 0.3 else ""
    return f"xid={','.join(events)}{repair}"


def mixed(random: Random) -> str:
    return " ".join(word(random) for word in random.sample((fail, vanish, shift, xid), k=2))


def indices(random: Random, *, most: int) -> str:
    return ",".join(map(str, sorted(random.sample(range(CARDS), k=random.randint(1, most)))))


def draw_simulated(operation: type[_Simulated], words: Callable[[Random], str]) -> Draw:
    return lambda random, _: operation(
        node=random.choice(WORKERS), words=words(random), seconds=round(random.uniform(*LASTS), 1)
    )


def draw_cordon(random: Random, _: Known) -> Operation:
    return CordonCards(
        node=random.choice(WORKERS),
        indices=indices(random, most=3),
        seconds=round(random.uniform(*LASTS), 1),
    )


def draw_exchange(random: Random, _: Known) -> Operation:
    groups = [
        {"count": random.randint(1, 3), "memory": random.choice(SIZES)} for _ in range(random.randint(1, 2))
    ]
    return ExchangeCards(
        node=random.choice(WORKERS), simulated=tuple(groups), seconds=round(random.uniform(*LASTS), 1)
    )


KINDS = (
    Kind(operation=FailCards, weight=2, draw=draw_simulated(FailCards, fail)),
    Kind(operation=VanishCards, weight=2, draw=draw_simulated(VanishCards, vanish)),
    Kind(operation=ShiftCards, weight=1, draw=draw_simulated(ShiftCards, shift)),
    Kind(operation=HangDriver, weight=1, draw=draw_simulated(HangDriver, hang)),
    Kind(operation=ReportXids, weight=1, draw=draw_simulated(ReportXids, xid)),
    Kind(operation=MixTroubles, weight=1, draw=draw_simulated(MixTroubles, mixed)),
    Kind(operation=CordonCards, weight=1.5, draw=draw_cordon),
    Kind(operation=ExchangeCards, weight=1.5, draw=draw_exchange),
)
