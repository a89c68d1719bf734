"""Policies are edited, overlap, are nonsense, go and come back; nodes move between their rules.

Pods that hold units stay: a change of unit or mode waits for them, and says so. A policy that goes leaves
them running. While a policy is away or asks for what cannot be, its nodes take nobody new; nothing else may
differ.
"""

import asyncio
import copy
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import msgspec

from chaos.operation import Fault, Kind, Operation
from chaos.operations.manifests import TakeManifestAway
from chaos.plan.known import CONTROL_PLANES, WORKERS, Known
from chaos.policies import POLICIES, policy, rule
from chaos.world import World
from gpushare_core.kube import paths
from gpushare_core.kube.errors import ApiError
from gpushare_core.text.json_object import Json
from gpushare_localcluster.errors import LocalClusterError

BASE: dict[str, Json] = {body["metadata"]["name"]: body for body in POLICIES}
UNITS = ("1Gi", "1Gi", "512Mi", "2Gi", "256Mi", "3Gi", "1G")
MODES = ("Memory", "Memory", "Slices", "Exclusive", "Mixed", "Mixed", "Off")
RESERVED = ("0", "512Mi", "1Gi", "5Gi")
DIALECTS = ("gpushare.io", "aliyun.com", "aliyun.com", "volcano.sh", "enflame.com", "tuya.com")
LASTS = (2.0, 6.0)
"""Seconds."""
ENGINE_LASTS = (2.0, 30.0)
"""Seconds: in the middle of the change, and until the other engine has placed pods."""
OVERLAPPING = "overlapping"
MOVE_LABEL = "chaos.gpushare.io/rule"
NOTE = "policies/"
"""Of ``Known.notes``, before the name of a policy: what it says now, as JSON."""


class _Edit(Fault, frozen=True, kw_only=True):
    """Policies are applied one right after the other; some again as they were at the end."""

    policies: tuple[dict[str, Any], ...]
    back: tuple[dict[str, Any], ...] = ()

    @property
    def touches(self) -> frozenset[str]:
        return frozenset({"policies"})

    async def run(self, world: World) -> None:
        for body in self.policies:
            await world.apply_policy(body)

    async def heal(self, world: World) -> None:
        for body in self.back:
            await world.apply_policy(body)

    def note(self, known: Known) -> None:
        for body in (*self.policies, *self.back):
            known.notes[NOTE + body["metadata"]["name"]] = msgspec.json.encode(body).decode()


class ChangeUnit(_Edit, frozen=True, kw_only=True, tag="policy.unit"):
    """Another memory unit."""


class ChangeMode(_Edit, frozen=True, kw_only=True, tag="policy.mode"):
    """Another mode, with its slices, on one node."""


class ChangeReserve(_Edit, frozen=True, kw_only=True, tag="policy.reserve"):
    """Other memory of each card is kept out of sharing."""


class ChangeDialect(_Edit, frozen=True, kw_only=True, tag="policy.dialect"):
    """Other names."""


class ChangePlacement(_Edit, frozen=True, kw_only=True, tag="policy.placement"):
    """Another strategy, preemption or not, more or fewer nodes offered for a pod."""


class EditTwice(_Edit, frozen=True, kw_only=True, tag="policy.edit-twice"):
    """Two edits, the second before anybody is done with the first."""


class Nonsense(_Edit, frozen=True, kw_only=True, tag="policy.nonsense"):
    """What cannot be: refused at admission, or a condition says what is wrong."""

    async def run(self, world: World) -> None:
        try:
            await super().run(world)
        except LocalClusterError as error:
            if "invalid" not in str(error).lower() and "forbidden" not in str(error).lower():
                raise


class Overlap(_Edit, frozen=True, kw_only=True, tag="policy.overlap"):
    """A younger policy claims nodes of an older one, and goes again. The older one may go and come back
    meanwhile: the other way round then.
    """

    replaced: str = ""
    """Name of the older policy that goes."""

    async def run(self, world: World) -> None:
        await super().run(world)
        if self.replaced:
            await delete(world, self.replaced)

    async def heal(self, world: World) -> None:
        """What is applied to a policy that is still going goes with it."""
        await delete(world, OVERLAPPING)
        if self.replaced:
            await gone(world, self.replaced)
        await super().heal(world)
        await gone(world, OVERLAPPING)


class Delete(_Edit, frozen=True, kw_only=True, tag="policy.delete"):
    """Policies are deleted while pods hold their units, and applied again when they are gone."""

    async def run(self, world: World) -> None:
        for body in self.back:
            await delete(world, body["metadata"]["name"])

    async def heal(self, world: World) -> None:
        for body in self.back:
            await gone(world, body["metadata"]["name"])
        await super().heal(world)


class DeleteAll(Delete, frozen=True, kw_only=True, tag="policy.delete-all"):
    """The last one, too: kube-schedulers are restored, and edited again."""


class DeleteWithoutControlPlane(Delete, frozen=True, kw_only=True, tag="policy.delete-all-node-away"):
    """All are deleted while a control-plane node has no power."""

    node: str

    @property
    def touches(self) -> frozenset[str]:
        return frozenset({"policies", f"node/{self.node}"})

    async def run(self, world: World) -> None:
        await world.thread(world.cluster.kill_node, self.node)
        await super().run(world)

    async def heal(self, world: World) -> None:
        await world.thread(world.cluster.start_node, self.node)
        await super().heal(world)


class DeleteWithoutManifest(Delete, frozen=True, kw_only=True, tag="policy.delete-all-manifest-away"):
    """All are deleted while the manifest of a kube-scheduler is moved away: its restoration waits for it."""

    node: str

    @property
    def touches(self) -> frozenset[str]:
        return self._away.touches

    @property
    def _away(self) -> TakeManifestAway:
        return TakeManifestAway(node=self.node, seconds=self.seconds)

    async def run(self, world: World) -> None:
        await self._away.run(world)
        await super().run(world)

    async def heal(self, world: World) -> None:
        await self._away.heal(world)
        await super().heal(world)


class ChangeBackend(_Edit, frozen=True, kw_only=True, tag="policy.backend"):
    """Schedulers are connected in another way for a while: each is restored, and edited again."""


class ChangeEngine(_Edit, frozen=True, kw_only=True, tag="policy.engine"):
    """The other engine places pods for a while. No pod that has units moves, and none is bound twice."""


class MoveNode(_Edit, frozen=True, kw_only=True, tag="policy.move-node"):
    """A label moves a node from one rule to another, and back when it goes."""

    node: str

    async def run(self, world: World) -> None:
        await super().run(world)
        await label(world, self.node, "moved")

    async def heal(self, world: World) -> None:
        await label(world, self.node, None)
        await super().heal(world)


async def label(world: World, node: str, value: str | None) -> None:
    await world.client.merge(f"{paths.NODES}/{node}", {"metadata": {"labels": {MOVE_LABEL: value}}})


async def delete(world: World, name: str) -> None:
    try:
        await world.client.delete(f"{paths.POLICIES}/{name}")
    except ApiError as error:
        if error.status != 404:
            raise


async def gone(world: World, name: str) -> None:
    """Waits until the policy is gone, as long as an operation or its healing may take. One that was not
    deleted is not waited for."""
    while await _is_going(world, name):  # noqa: ASYNC110 - what is waited for is another's work
        await asyncio.sleep(0.25)


async def _is_going(world: World, name: str) -> bool:
    try:
        found = await world.client.get(f"{paths.POLICIES}/{name}")
    except ApiError as error:
        if error.status == 404:
            return False
        raise
    return "deletionTimestamp" in found["metadata"]


# What is drawn


def current(known: Known, name: str) -> Json:
    """Returns the policy as the plan has ordered it."""
    said = known.notes.get(NOTE + name)
    found: Json = msgspec.json.decode(said) if said else BASE[name]
    return copy.deepcopy(found)


Change = Callable[[Random, Json], None]
"""Edits a policy in place."""


def unit(random: Random, each: Json) -> None:
    each["spec"]["memoryUnit"] = random.choice(UNITS)


def mode(random: Random, each: Json) -> None:
    chosen = random.choice(each["spec"]["nodes"])
    chosen["mode"] = random.choice(MODES)
    chosen.pop("slicesPerCard", None)
    if chosen["mode"] in ("Slices", "Mixed"):
        chosen["slicesPerCard"] = random.choice((2, 3, 4, 7))


def reserve(random: Random, each: Json) -> None:
    random.choice(each["spec"]["nodes"])["reservedMemory"] = random.choice(RESERVED)


def dialect(random: Random, each: Json) -> None:
    each["spec"]["dialect"] = random.choice(DIALECTS)


def placement(random: Random, each: Json) -> None:
    each["spec"]["placement"] = {
        "strategy": random.choice(("Binpack", "Spread")),
        "preemption": random.choice(("Enabled", "Disabled")),
        "candidates": random.choice((0, 1, 2, 16)),
    }


def nonsense(random: Random, each: Json) -> None:
    spec, chosen = each["spec"], random.choice(each["spec"]["nodes"])
    match random.randint(0, 7):
        case 0:
            spec["memoryUnit"] = random.choice(("banana", "0", "-1Gi", "1Ki", "9999999Ti"))
        case 1:
            spec["memoryUnit"] = "64Gi"  # of no card there is
        case 2:
            chosen["slicesPerCard"] = random.choice((-1, 0, 100_000))
        case 3:
            chosen["mode"] = random.choice(("Sometimes", "", 7))
        case 4:
            chosen["reservedMemory"] = random.choice(("64Gi", "much", "-1"))
        case 5:
            chosen["devices"] = {"source": "Inventory", "inventoryPath": "/etc/gpushare/nothing-here.yaml"}
        case 6:
            chosen["devices"] = {"source": "NVML"}  # without a driver
        case _:
            spec["nodes"] = []


def draw_change(operation: type[_Edit], *changes: Change) -> Callable[[Random, Known], Operation]:
    def draw(random: Random, known: Known) -> Operation:
        edited, steps = current(known, random.choice(list(BASE))), list[Json]()
        for change in changes:
            change(random, edited)
            steps.append(copy.deepcopy(edited))
        # Now and then all is as in the beginning, so that every class is served somewhere again.
        back = tuple(POLICIES) if random.random() < 0.6 else ()
        return operation(policies=tuple(steps), back=back, seconds=lasts(random))

    return draw


def draw_nonsense(random: Random, known: Known) -> Operation:
    before = current(known, random.choice(list(BASE)))
    edited = copy.deepcopy(before)
    nonsense(random, edited)
    return Nonsense(policies=(edited,), back=(before,), seconds=lasts(random))


def draw_twice(random: Random, known: Known) -> Operation:
    changes = random.sample((unit, mode, mode, reserve, dialect, placement), k=2)
    return draw_change(EditTwice, *changes)(random, known)


def draw_overlap(random: Random, known: Known) -> Operation:
    nodes = random.sample(WORKERS, k=random.randint(1, 3))
    rules = [rule(node, random.choice(("Memory", "Exclusive", "Memory"))) for node in nodes]
    younger = policy(OVERLAPPING, rules, memoryUnit=random.choice(UNITS))
    replaced = random.choice((*BASE, "", ""))
    back = (current(known, replaced),) if replaced else ()
    return Overlap(policies=(younger,), back=back, replaced=replaced, seconds=lasts(random))


def draw_delete(random: Random, known: Known) -> Operation:
    return Delete(policies=(), back=(current(known, random.choice(list(BASE))),), seconds=lasts(random))


def draw_delete_all(random: Random, known: Known) -> Operation:
    return DeleteAll(policies=(), back=everything(known), seconds=lasts(random))


def draw_delete_away(random: Random, known: Known) -> Operation:
    return DeleteWithoutControlPlane(
        policies=(), back=everything(known), node=random.choice(CONTROL_PLANES), seconds=lasts(random)
    )


def draw_delete_manifest_away(random: Random, known: Known) -> Operation:
    return DeleteWithoutManifest(
        policies=(), back=everything(known), node=random.choice(CONTROL_PLANES), seconds=lasts(random)
    )


def draw_backend(random: Random, known: Known) -> Operation:
    back, changed = everything(known), copy.deepcopy(everything(known))
    for body in changed:
        body["spec"]["scheduler"] = {"backend": "External"}
    return ChangeBackend(policies=changed, back=back, seconds=lasts(random))


def draw_engine(random: Random, known: Known) -> Operation:
    back, changed = everything(known), copy.deepcopy(everything(known))
    for body in changed:
        body["spec"]["scheduler"] = {"backend": "Dedicated", "engine": "Extender"}
    return ChangeEngine(policies=changed, back=back, seconds=random.choice(ENGINE_LASTS))


def draw_move(random: Random, known: Known) -> Operation:
    before = current(known, random.choice(list(BASE)))
    node = random.choice(before["spec"]["nodes"])["names"][0]
    moved = copy.deepcopy(before)
    first = rule(node, random.choice(("Memory", "Exclusive", "Off")))
    del first["names"]
    first["selector"] = {"matchLabels": {MOVE_LABEL: "moved"}}
    moved["spec"]["nodes"].insert(0, first)
    return MoveNode(policies=(moved,), back=(before,), node=node, seconds=lasts(random))


def everything(known: Known) -> tuple[Json, ...]:
    return tuple(current(known, name) for name in BASE)


def lasts(random: Random) -> float:
    return round(random.uniform(*LASTS), 1)


KINDS: Sequence[Kind] = (
    Kind(operation=ChangeUnit, weight=1, draw=draw_change(ChangeUnit, unit)),
    Kind(operation=ChangeMode, weight=1.5, draw=draw_change(ChangeMode, mode)),
    Kind(operation=ChangeReserve, weight=0.5, draw=draw_change(ChangeReserve, reserve)),
    Kind(operation=ChangeDialect, weight=1, draw=draw_change(ChangeDialect, dialect)),
    Kind(operation=ChangePlacement, weight=0.5, draw=draw_change(ChangePlacement, placement)),
    Kind(operation=EditTwice, weight=1, draw=draw_twice),
    Kind(operation=Nonsense, weight=1, draw=draw_nonsense),
    Kind(operation=Overlap, weight=1, draw=draw_overlap),
    Kind(operation=MoveNode, weight=0.7, draw=draw_move),
    Kind(operation=Delete, weight=0.7, draw=draw_delete),
    Kind(operation=DeleteAll, weight=0.3, draw=draw_delete_all, at_most=2),
    Kind(operation=DeleteWithoutControlPlane, weight=0.4, draw=draw_delete_away, at_most=1),
    Kind(operation=DeleteWithoutManifest, weight=0.3, draw=draw_delete_manifest_away, at_most=1),
    Kind(operation=ChangeBackend, weight=0.3, draw=draw_backend, at_most=1),
)

OF_STATIC_PODS: frozenset[type[Operation]] = frozenset({DeleteWithoutManifest, ChangeBackend})
"""Operations on the cluster's own kube-scheduler while it is edited."""
PLUGIN_KINDS: Sequence[Kind] = (Kind(operation=ChangeEngine, weight=0.5, draw=draw_engine, at_most=5),)
"""In place of these where a kube-scheduler of our own has the plugin."""
