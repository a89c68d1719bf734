"""What happens to a simulated cluster, by weight. Each takes two numbers, which choose what it is done to."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from tests.samples.plugin import container
from tests.samples.pod_shapes import CLASSES, SERVED, SHAPES, SPECS
from tests.simulation.static_pods import is_mirror
from tests.simulation.world import GI, SimulatedNode, World

from gpushare_core.api.names import MIRROR_ANNOTATION
from gpushare_core.dialects.table import DIALECTS, RESOURCES
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.text.json_object import Json

Operation = Callable[[World, int, int], Awaitable[None] | None]

MAX_WAITING = 12
FILES = 2
"""Static pods of a node at most."""
DIALECT_NAMES = ("gpushare.io", "tuya.com")
"""Of the latter every class has a name of its own."""


def create(world: World, a: int, b: int) -> None:
    """Creates a pod. Where many wait already, one of them is deleted: in a full cluster nothing changes any
    more."""
    waiting = [pod for pod in world.pods() if not pod["spec"].get("nodeName")]
    if len(waiting) > MAX_WAITING:
        world.force_delete(waiting[0])
    containers, inits = _shape(world, a, b)
    world.create_pod(containers, inits)


def burst(world: World, a: int, b: int) -> None:
    for _ in range(2 + b % 6):
        create(world, a, b)


def _shape(world: World, a: int, b: int) -> tuple[list[Json], list[Json]]:
    served = [
        DIALECTS[DIALECT_NAMES[a % 7 % 2]].resource_name(resource_class)
        for resource_class in CLASSES[world.mode]
    ]
    name = served[b % len(served)]
    amount = a % 9 + 1 if RESOURCES[name] is ResourceClass.MEMORY else a % 2 + 1
    containers, inits = SHAPES[b % len(SHAPES)](name, amount)
    if len(served) > 1 and not b % 4:
        containers.append(container("other", 1, served[(b + 1) % len(served)]))
    return containers, inits


def create_bound(world: World, a: int, b: int) -> None:
    """By ``nodeName``: past kube-scheduler and extender."""
    served = SERVED[world.mode]
    containers, inits = SHAPES[b % len(SHAPES)](served[a % len(served)], b % 3 + 1)
    world.create_pod(containers, inits, node=_node(world, a).name)


def create_copy(world: World, a: int, _b: int) -> None:
    """A pod with all annotations of another one, as by ``kubectl debug --copy-to --keep-annotations``.

    The API server refuses the mirror of a pod that is not bound. Source: ``ValidatePodSpecificAnnotations``.
    """
    if pod := _pod(world, a):
        spec, annotations = pod["spec"], pod["metadata"]["annotations"]
        node = spec["nodeName"] if is_mirror(pod) else ""
        world.create_pod(spec["containers"], spec["initContainers"], node=node, **annotations)


def write_file(world: World, a: int, b: int) -> None:
    """A static pod, in place of the one that its file had."""
    kubelet = _node(world, a).kubelet
    served = SERVED[world.mode]
    containers, inits = SHAPES[b % len(SHAPES)](served[a % len(served)], b % 4 + 1)
    kubelet.manifests.write(b % FILES, containers, inits)
    kubelet.notify()


def remove_file(world: World, a: int, b: int) -> None:
    """Deletes the file for good, or for a moment: then the same pod comes back."""
    kubelet = _node(world, a).kubelet
    removed = kubelet.manifests.remove(kubelet.manifests.name_of(b % FILES))
    kubelet.notify()
    if removed and a % 2:

        def put_back() -> None:
            kubelet.manifests.put_back(removed)
            kubelet.notify()

        world.later(_moment(b), put_back)


def delete_mirror(world: World, a: int, b: int) -> None:
    """Deletes a mirror; its kubelet creates another one: at once, or within a minute after a deletion by
    force."""
    mirrors = [pod for pod in world.bound() if is_mirror(pod)]
    if mirrors:
        mirror = mirrors[a % len(mirrors)]
        if b % 2:
            world.delete_pod(mirror)
        else:
            world.force_delete(mirror)


def forge_mirror(world: World, a: int, b: int) -> None:
    """A pod whose author declares it the mirror of a running pod, or of one that does not exist, and copies
    the annotations of the other one."""
    kubelet = _node(world, a).kubelet
    known = [*kubelet.pods.values()]
    victim = known[b % len(known)] if known else None
    present = {pod["metadata"]["name"]: pod["metadata"]["annotations"] for pod in world.bound()}
    copied = present.get(victim.name[1], {}) if victim and b % 3 == 0 else {}
    containers, inits = _shape(world, a, b)
    annotations = {**copied, MIRROR_ANNOTATION: victim.uid if victim else "nobody"}
    world.create_pod(containers, inits, node=kubelet.node, **annotations)


def delete(world: World, a: int, _b: int) -> None:
    if pod := _pod(world, a):
        world.delete_pod(pod)


def force_delete(world: World, a: int, _b: int) -> None:
    if pod := _pod(world, a):
        world.force_delete(pod)


def recreate(world: World, a: int, b: int) -> None:
    """Deletes a pod by force, and creates another one of the same name at once; for a mirror the kubelet
    does."""
    if pod := _pod(world, a):
        world.force_delete(pod)
        if is_mirror(pod):
            return
        spec, name = pod["spec"], pod["metadata"]["name"]
        node = spec.get("nodeName", "") if b % 4 == 0 else ""
        world.create_pod(spec["containers"], spec["initContainers"], name=name, node=node)


def finish(world: World, a: int, _b: int) -> None:
    if (pod := _pod(world, a)) and pod["spec"].get("nodeName"):
        world.finish_pod(pod)


async def kill_plugin(world: World, a: int, b: int) -> None:
    plugin = _node(world, a).plugin
    await plugin.kill()
    world.later(_moment(b), plugin.start)


def restart_kubelet(world: World, a: int, b: int) -> None:
    kubelet = _node(world, a).kubelet
    kubelet.stop()
    world.later(_moment(b), lambda: None if kubelet.is_up else kubelet.start())


def silence_kubelet(world: World, a: int, b: int) -> None:
    kubelet = _node(world, a).kubelet
    kubelet.silent = True
    world.later(_moment(b), lambda: setattr(kubelet, "silent", False))


async def kill_extender(world: World, a: int, b: int) -> None:
    engine = [*world.engines.values()][a % 2]
    await engine.kill()
    world.later(_moment(b), engine.start)


def fail_over(world: World, a: int, _b: int) -> None:
    """Another kube-scheduler becomes the leader, and asks its own engine."""
    world.scheduler.asks = [*world.engines][a % 2]


def cut_link(world: World, a: int, b: int) -> None:
    link = [*world.links.values()][a % len(world.links)]
    link.is_down = True
    world.server.wake()
    world.later(_moment(b), link.heal)


def lose_answers(world: World, a: int, b: int) -> None:
    link = [*world.links.values()][a % len(world.links)]
    link.lost = 0.3
    world.later(_moment(b), link.heal)


def slow_link(world: World, a: int, b: int) -> None:
    link = [*world.links.values()][a % len(world.links)]
    link.slow = (5.0, 50.0, 300.0)[b % 3]
    world.later(_moment(b), link.heal)


def lag_watches(world: World, a: int, b: int) -> None:
    """One program gets all events late, those of pods and of GPUShareNodes with different delays."""
    link = [*world.links.values()][a % len(world.links)]
    link.lag = (0.5, 2.0, 4.0)[b % 3]
    world.later(_moment(b), link.heal)


def compact(world: World, _a: int, _b: int) -> None:
    world.server.compact()


def fail_card(world: World, a: int, b: int) -> None:
    node = _node(world, a)
    uuid = _card(node, b)
    if uuid:
        node.cards.set_health(uuid, healthy=False)
        world.later(_moment(b), lambda: _return(node, uuid))


def _return(node: SimulatedNode, uuid: str) -> None:
    if uuid in node.cards.present:
        node.cards.set_health(uuid, healthy=True)


def change_unit(world: World, a: int, b: int) -> None:
    specs = SPECS[world.mode]
    world.apply_policy(_node(world, a).name, specs[b % len(specs)])


def change_mode(world: World, a: int, b: int) -> None:
    every = [spec for specs in SPECS.values() for spec in specs]
    name = _node(world, a).name
    world.apply_policy(name, every[b % len(every)])
    world.later(3.0, lambda: world.apply_policy(name, SPECS[world.mode][0]))


def change_dialect(world: World, a: int, b: int) -> None:
    world.apply_policy(_node(world, a).name, {"dialect": DIALECT_NAMES[b % 2]})


def delete_policy(world: World, a: int, b: int) -> None:
    name = _node(world, a).name
    world.delete_policy(name)
    world.later(_moment(b), lambda: world.apply_policy(name, SPECS[world.mode][0]))


async def lose_checkpoint(world: World, a: int, _b: int) -> None:
    """Its file is deleted, and the kubelet restarted: nothing mends that but the end of these pods.

    Not in the moment in which it has given units past the extender that no other book has yet: as long as its
    PodResources are silent, or its plugin is away, that can be long.
    """
    node = _node(world, a)
    await node.kubelet.until_settled()
    for _ in range(50):
        if _given(node) <= world.recorded(node.name):
            node.kubelet.lose_checkpoint()
            return
        await asyncio.sleep(0.1)


def _given(node: SimulatedNode) -> set[tuple[str, str, str]]:
    return {(*pod.name, container) for pod in node.kubelet.pods.values() for container in pod.held}


def restart_container(world: World, a: int, b: int) -> None:
    """A container crashes: where its units were forgotten, the kubelet asks for units again."""
    pods = [*_node(world, a).kubelet.pods.values()]
    if pods:
        pod = pods[b % len(pods)]
        names = [container["name"] for container in pod.body["spec"]["containers"]]
        world.nodes[pod.body["spec"]["nodeName"]].kubelet.restart_container(pod.uid, names[a % len(names)])


def shift_cards(world: World, a: int, _b: int) -> None:
    """Found in another order: indices change."""
    node = _node(world, a)
    found = [*node.cards.present.values()][::-1]
    node.cards.present = {card.uuid: replace(card, index=at) for at, card in enumerate(found)}


def vanish_card(world: World, a: int, b: int) -> None:
    node = _node(world, a)
    uuid = _card(node, b)
    if uuid and len(node.cards.present) > 1:
        gone = node.cards.present.pop(uuid)
        world.later(_moment(b), lambda: node.cards.present.update({gone.uuid: gone}))


def resize_card(world: World, a: int, b: int) -> None:
    node = _node(world, a)
    uuid = _card(node, b)
    if uuid:
        memory = (b % 20 + 4) * GI
        node.cards.present[uuid] = replace(node.cards.present[uuid], memory=memory)


def _node(world: World, a: int) -> SimulatedNode:
    nodes = [*world.nodes.values()]
    return nodes[a % len(nodes)]


def _card(node: SimulatedNode, b: int) -> str:
    uuids = [*node.cards.present]
    return uuids[b % len(uuids)] if uuids else ""


def _pod(world: World, a: int) -> Json | None:
    """Any, those on a node three times as likely."""
    pods = world.pods() if a % 4 == 0 else world.bound()
    return pods[a % len(pods)] if pods else None


def _moment(b: int) -> float:
    return (0.05, 0.3, 1.0, 4.0)[b % 4]


PODS: dict[Operation, int] = {
    create: 60,
    burst: 6,
    create_bound: 8,
    create_copy: 2,
    delete: 30,
    force_delete: 10,
    recreate: 6,
    finish: 12,
    restart_container: 8,
    write_file: 6,
    remove_file: 3,
    delete_mirror: 3,
    forge_mirror: 2,
}
"""What people do to pods, by weight."""
BREAKS: dict[Operation, int] = {
    kill_plugin: 3,
    restart_kubelet: 2,
    silence_kubelet: 2,
    kill_extender: 3,
    fail_over: 3,
    cut_link: 3,
    lose_answers: 4,
    slow_link: 2,
    lag_watches: 4,
    compact: 2,
    fail_card: 2,
    change_unit: 2,
    change_mode: 1,
    change_dialect: 1,
    delete_policy: 1,
    shift_cards: 1,
    vanish_card: 1,
    resize_card: 1,
    lose_checkpoint: 2,
}
"""What happens to everything else."""
FAULTS = {kind.__name__ for kind in BREAKS}
BY_NAME = {operation.__name__: operation for operation in (*PODS, *BREAKS)}


@dataclass(frozen=True, slots=True)
class Step:
    """One operation of a history, and the seconds before it."""

    after: float
    name: str
    a: int
    b: int

    def __str__(self) -> str:
        return f"{self.after:.3f} {self.name} {self.a} {self.b}"


QUIET = "quiet"
"""Nothing happens until all books have to agree."""
ROUND = 20
"""Operations between two quiets."""
AT_A_TIME = (0, 1, 1, 1, 1, 3, 6)
"""How many faults there are in a round."""


def draw(seed: int, operations: int) -> list[Step]:
    """Returns a history that follows from ``seed`` alone. A longer one begins like a shorter one."""
    dice = random.Random(f"{seed} history")  # noqa: S311
    steps: list[Step] = []
    for _ in range(0, operations, ROUND):
        faults = dice.choice(AT_A_TIME)
        drawn = [
            *dice.choices([*PODS], [*PODS.values()], k=ROUND - faults),
            *dice.choices([*BREAKS], [*BREAKS.values()], k=faults),
        ]
        dice.shuffle(drawn)
        steps += [_step(dice, operation) for operation in drawn]
        steps.append(Step(0.0, QUIET, 0, 0))
    return steps


def _step(dice: random.Random, operation: Operation) -> Step:
    after = dice.choice((0.0, 0.002, 0.02, 0.1, 0.1, 0.4))
    return Step(after, operation.__name__, dice.randrange(240), dice.randrange(240))
