"""What the author of a pod writes to get units without a grant: it must change no book (I5)."""

import json
from random import Random

from chaos.operation import BreachError, Kind, Operation
from chaos.operations.pod_shapes import PodShape, draw_shape
from chaos.operations.pods import has_pods, has_room
from chaos.plan.known import WORKERS, Known
from chaos.policies import CARDS
from chaos.workload import pod_body
from chaos.world import World
from gpushare_core.kube.errors import ApiError
from gpushare_core.kube.paths import SHARE_NODES

ALLOCATION = "gpushare.io/allocation"
REFUSALS = (403, 422)
NONSENSE = ("", "{", "null", "[]", "0" * 4000, '{"node":1}', "\U0001f4a3", '{"containers":{"c0":{"x":-1}}}')
DIALECTS = (
    "ALIYUN_COM_GPU_MEM_IDX",
    "ALIYUN_COM_GPU_MEM_POD",
    "ALIYUN_COM_GPU_MEM_DEV",
    "ALIYUN_COM_GPU_MEM_ASSIGNED",
    "ALIYUN_COM_GPU_MEM_ASSUME_TIME",
    "scheduler.framework.gpushare.allocation",
    "volcano.sh/gpu-index",
    "volcano.sh/gpu-assigned",
    "volcano.sh/predicate-time",
    "enflame.com/gcu-device-id",
    "enflame.com/gcu-device-assigned",
)
NUMBERS = ("0", "1", "3", "-1", "16", "true", "false", "99999999999999999999", "a", "{}")


class CreateForged(Operation, frozen=True, kw_only=True, tag="pod.forged"):
    """A pod that brings annotations that only our programs write; ``node`` empty: to the scheduler."""

    name: str
    shape: PodShape
    node: str = ""

    async def run(self, world: World) -> None:
        body = pod_body(self.name, self.shape)
        await (world.create_pod_on(self.node, body) if self.node else world.create_pod(body))

    def note(self, known: Known) -> None:
        known.pods[self.name] = "pod"


class Forge(Operation, frozen=True, kw_only=True, tag="pod.forge"):
    """Changes annotations of an existing pod: our admission policies refuse that to everybody."""

    name: str
    annotations: dict[str, str]

    async def run(self, world: World) -> None:
        path, annotations = world.pod_path(self.name), self.annotations
        before = (await world.client.get(path))["metadata"].get("annotations") or {}
        try:
            await world.client.merge(path, {"metadata": {"annotations": annotations}})
        except ApiError as error:
            if error.status not in REFUSALS:
                raise
            return
        if any(before.get(key) != value for key, value in annotations.items()):
            names = ", ".join(sorted(annotations))
            raise BreachError(
                "I5", f"{names} of pod {self.name} could be changed: no admission policy refused it"
            )


class ForgeCard(Operation, frozen=True, kw_only=True, tag="pod.forged-card"):
    """A pod claims units of a card that really exists, for itself or in the name of another pod's UID."""

    name: str
    shape: PodShape
    node: str
    card: int
    units: int

    async def run(self, world: World) -> None:
        status = (await world.client.get(f"{SHARE_NODES}/{self.node}")).get("status") or {}
        cards = status.get("cards") or []
        body = pod_body(self.name, self.shape)
        if self.card < len(cards):
            body["metadata"]["annotations"][ALLOCATION] = _claim(
                self.node, cards[self.card]["uuid"], self.units
            )
        await world.create_pod(body)

    def note(self, known: Known) -> None:
        known.pods[self.name] = "pod"


def _claim(node: str, card: str, units: int) -> str:
    claim = {
        "node": node,
        "uid": "00000000-0000-0000-0000-000000000000",
        "at": "2026-01-01T00:00:00Z",
        "unit": "1Gi",
        "containers": {"c0": {card: units}},
        "resource": "memory",
        "cards": {card: units},
    }
    return json.dumps(claim, separators=(",", ":"))


def draw_forged(random: Random, known: Known) -> Operation:
    shape = draw_shape(random)
    forged = PodShape(asks=shape.asks, grace=shape.grace, annotations=_annotations(random))
    node = random.choice(("", "", *WORKERS))
    return CreateForged(name=known.new_name("forged"), shape=forged, node=node)


def draw_forge(random: Random, known: Known) -> Operation:
    return Forge(name=random.choice(list(known.pods)), annotations=_annotations(random))


def draw_card(random: Random, known: Known) -> Operation:
    return ForgeCard(
        name=known.new_name("claim"),
        shape=draw_shape(random),
        node=random.choice(WORKERS),
        card=random.randrange(CARDS),
        units=random.choice((1, 8, 16)),
    )


def _annotations(random: Random) -> dict[str, str]:
    names = random.sample(DIALECTS, random.randint(1, 5))
    annotations = {name: random.choice(NUMBERS) for name in names}
    if random.random() < 0.5:
        annotations[ALLOCATION] = random.choice(NONSENSE)
    return annotations


KINDS = (
    Kind(operation=CreateForged, weight=1, draw=draw_forged, possible=has_room),
    Kind(operation=Forge, weight=1, draw=draw_forge, possible=has_pods),
    Kind(operation=ForgeCard, weight=0.7, draw=draw_card, possible=has_room),
)
