"""Pods are created and deleted: of all shapes and classes, in every way that the API knows."""

from random import Random

from chaos.operation import Kind, Operation
from chaos.operations.pod_shapes import PodShape, draw_shape
from chaos.plan.known import WORKERS, Known
from chaos.workload import pod_body
from chaos.world import World

MAX_PODS = 45
"""Pods in the cluster at a time: enough to fill it, few enough for two cores."""


class CreatePod(Operation, frozen=True, kw_only=True, tag="pod.create"):
    """A pod is created and left to the scheduler."""

    name: str
    shape: PodShape

    async def run(self, world: World) -> None:
        await world.create_pod(pod_body(self.name, self.shape))

    def note(self, known: Known) -> None:
        known.pods[self.name] = "pod"


class CreateBurst(Operation, frozen=True, kw_only=True, tag="pod.burst"):
    """Equal pods at once."""

    names: tuple[str, ...]
    shape: PodShape

    async def run(self, world: World) -> None:
        await world.together(world.create_pod(pod_body(name, self.shape)) for name in self.names)

    def note(self, known: Known) -> None:
        known.pods.update(dict.fromkeys(self.names, "pod"))


class CreateOnNode(Operation, frozen=True, kw_only=True, tag="pod.node-name"):
    """A pod that its author puts on a node, past every scheduler."""

    name: str
    shape: PodShape
    node: str

    async def run(self, world: World) -> None:
        await world.create_pod_on(self.node, pod_body(self.name, self.shape))

    def note(self, known: Known) -> None:
        known.pods[self.name] = "pod"


class BindByOther(Operation, frozen=True, kw_only=True, tag="pod.foreign-binding"):
    """A pod of another scheduler, which binds it without asking anybody."""

    name: str
    shape: PodShape
    node: str

    async def run(self, world: World) -> None:
        body = pod_body(self.name, self.shape)
        body["spec"]["schedulerName"] = "somebody-else"
        world.bound_past_schedulers.add(self.name)
        await world.create_pod(body)
        target = {"apiVersion": "v1", "kind": "Node", "name": self.node}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": self.name}, "target": target}
        await world.client.create(f"{world.pod_path(self.name)}/binding", binding)

    def note(self, known: Known) -> None:
        known.pods[self.name] = "pod"


class DeletePod(Operation, frozen=True, kw_only=True, tag="pod.delete"):
    """Deleted as usual."""

    name: str

    async def run(self, world: World) -> None:
        await world.delete_pod(self.name)

    def note(self, known: Known) -> None:
        known.pods.pop(self.name, None)


class ForceDeletePod(Operation, frozen=True, kw_only=True, tag="pod.force-delete"):
    """Deleted without waiting for its node."""

    name: str

    async def run(self, world: World) -> None:
        await world.delete_pod(self.name, grace=0)

    def note(self, known: Known) -> None:
        known.pods.pop(self.name, None)


class EvictPod(Operation, frozen=True, kw_only=True, tag="pod.evict"):
    """Evicted, as by ``kubectl drain``."""

    name: str

    async def run(self, world: World) -> None:
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": self.name}}
        await world.client.create(f"{world.pod_path(self.name)}/eviction", body)

    def note(self, known: Known) -> None:
        known.pods.pop(self.name, None)


class RecreatePod(Operation, frozen=True, kw_only=True, tag="pod.recreate"):
    """Deleted by force, and another one of the same name at once, as a StatefulSet would on a lost node."""

    name: str
    shape: PodShape

    async def run(self, world: World) -> None:
        await world.delete_pod(self.name, grace=0)
        await world.create_pod(pod_body(self.name, self.shape))

    def note(self, known: Known) -> None:
        known.pods[self.name] = "pod"


def draw_create(random: Random, known: Known) -> Operation:
    return CreatePod(name=known.new_name("pod"), shape=draw_shape(random))


def draw_burst(random: Random, known: Known) -> Operation:
    names = tuple(known.new_name("burst") for _ in range(random.randint(3, 6)))
    return CreateBurst(names=names, shape=draw_shape(random))


def draw_on_node(random: Random, known: Known) -> Operation:
    return CreateOnNode(name=known.new_name("bound"), shape=draw_shape(random), node=random.choice(WORKERS))


def draw_by_other(random: Random, known: Known) -> Operation:
    return BindByOther(name=known.new_name("foreign"), shape=draw_shape(random), node=random.choice(WORKERS))


def draw_delete(random: Random, known: Known) -> Operation:
    return DeletePod(name=_any_pod(random, known))


def draw_force_delete(random: Random, known: Known) -> Operation:
    return ForceDeletePod(name=_any_pod(random, known))


def draw_evict(random: Random, known: Known) -> Operation:
    return EvictPod(name=_any_pod(random, known))


def draw_recreate(random: Random, known: Known) -> Operation:
    return RecreatePod(name=_any_pod(random, known), shape=draw_shape(random))


def has_room(known: Known) -> bool:
    return len(known.pods) < MAX_PODS


def has_pods(known: Known) -> bool:
    return bool(known.pods)


def has_many(known: Known) -> bool:
    return len(known.pods) > MAX_PODS // 2


def _any_pod(random: Random, known: Known) -> str:
    return random.choice(list(known.pods))


KINDS = (
    Kind(operation=CreatePod, weight=10, draw=draw_create, possible=has_room),
    Kind(operation=CreateBurst, weight=1, draw=draw_burst, possible=has_room),
    Kind(operation=CreateOnNode, weight=1.5, draw=draw_on_node, possible=has_room),
    Kind(operation=BindByOther, weight=1.5, draw=draw_by_other, possible=has_room),
    Kind(operation=DeletePod, weight=8, draw=draw_delete, possible=has_pods),
    Kind(operation=ForceDeletePod, weight=3, draw=draw_force_delete, possible=has_pods),
    Kind(operation=EvictPod, weight=2, draw=draw_evict, possible=has_pods),
    Kind(operation=RecreatePod, weight=2, draw=draw_recreate, possible=has_pods),
)
