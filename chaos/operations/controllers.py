"""Pods that somebody else makes: controllers in the cluster, and kubelets from files on their nodes."""

import json
from random import Random

from chaos.operation import Kind, Operation
from chaos.operations.pod_shapes import Life, PodShape, draw_shape
from chaos.operations.static_pods import MANIFESTS, remove_file
from chaos.plan.known import WORKERS, Known
from chaos.workload import controller_body, pod_body
from chaos.world import NAMESPACE, VERSION, World

COLLECTIONS = {
    "Job": "/apis/batch/v1/namespaces/chaos/jobs",
    "Deployment": "/apis/apps/v1/namespaces/chaos/deployments",
    "DaemonSet": "/apis/apps/v1/namespaces/chaos/daemonsets",
    "StatefulSet": "/apis/apps/v1/namespaces/chaos/statefulsets",
}
MOST = 6
"""Controllers at a time."""
STATIC = "static"


class CreateController(Operation, frozen=True, kw_only=True, tag="controller.create"):
    """A Job, Deployment, DaemonSet or StatefulSet."""

    name: str
    of: str
    replicas: int
    shape: PodShape

    async def run(self, world: World) -> None:
        body = controller_body(self.of, self.name, self.shape, replicas=self.replicas)
        await world.client.create(COLLECTIONS[self.of], body)

    def note(self, known: Known) -> None:
        known.owners[self.name] = self.of


class ScaleController(Operation, frozen=True, kw_only=True, tag="controller.scale"):
    """More pods of it, or fewer."""

    name: str
    of: str
    replicas: int

    async def run(self, world: World) -> None:
        await world.client.merge(f"{COLLECTIONS[self.of]}/{self.name}", {"spec": {"replicas": self.replicas}})


class DeleteController(Operation, frozen=True, kw_only=True, tag="controller.delete"):
    """With all its pods."""

    name: str
    of: str

    async def run(self, world: World) -> None:
        await world.client.delete(f"{COLLECTIONS[self.of]}/{self.name}")

    def note(self, known: Known) -> None:
        known.owners.pop(self.name, None)


class WriteStaticPod(Operation, frozen=True, kw_only=True, tag="static.write"):
    """A file in a node's manifest folder, which makes a pod that no scheduler sees. Each write makes another
    pod."""

    node: str
    name: str
    shape: PodShape

    @property
    def touches(self) -> frozenset[str]:
        return frozenset({f"static/{self.node}/{self.name}"})

    async def run(self, world: World) -> None:
        body = pod_body(self.name, self.shape)
        body["metadata"]["namespace"] = NAMESPACE
        body["metadata"]["annotations"][VERSION] = world.static_pod_written(self.node, self.name)
        folder = world.node_file(self.node, MANIFESTS)
        folder.mkdir(parents=True, exist_ok=True)
        staged = folder.parent / f"{self.name}.json"
        staged.write_text(json.dumps(body))
        staged.rename(folder / f"{self.name}.json")

    def note(self, known: Known) -> None:
        known.notes[f"{STATIC}/{self.node}/{self.name}"] = self.name


class RemoveStaticPod(Operation, frozen=True, kw_only=True, tag="static.remove"):
    """The file goes, and the pod with it."""

    node: str
    name: str

    @property
    def touches(self) -> frozenset[str]:
        return frozenset({f"static/{self.node}/{self.name}"})

    async def run(self, world: World) -> None:
        remove_file(world, node=self.node, name=self.name)

    def note(self, known: Known) -> None:
        known.notes.pop(f"{STATIC}/{self.node}/{self.name}", None)


def draw_controller(random: Random, known: Known) -> Operation:
    of = random.choice(tuple(COLLECTIONS))
    shape = draw_shape(random)
    life = Life.ENDS if of == "Job" else Life.STAYS
    return CreateController(
        name=known.new_name(of.lower()),
        of=of,
        replicas=random.randint(1, 4),
        shape=PodShape(asks=shape.asks, life=life, grace=shape.grace),
    )


def draw_scale(random: Random, known: Known) -> Operation:
    name = random.choice([name for name, of in known.owners.items() if of in SCALED])
    return ScaleController(name=name, of=known.owners[name], replicas=random.randint(0, 5))


def draw_delete(random: Random, known: Known) -> Operation:
    name = random.choice(list(known.owners))
    return DeleteController(name=name, of=known.owners[name])


def draw_static(random: Random, _: Known) -> Operation:
    shape = draw_shape(random)
    name = f"static-{random.randint(1, 2)}"
    return WriteStaticPod(
        node=random.choice(WORKERS), name=name, shape=PodShape(asks=shape.asks, grace=shape.grace)
    )


def draw_static_removal(random: Random, known: Known) -> Operation:
    _, node, name = random.choice(_static(known)).split("/")
    return RemoveStaticPod(node=node, name=name)


SCALED = ("Deployment", "StatefulSet")


def has_room(known: Known) -> bool:
    return len(known.owners) < MOST


def has_owners(known: Known) -> bool:
    return bool(known.owners)


def has_scaled(known: Known) -> bool:
    return any(of in SCALED for of in known.owners.values())


def has_static(known: Known) -> bool:
    return bool(_static(known))


def _static(known: Known) -> list[str]:
    return [key for key in known.notes if key.startswith(f"{STATIC}/")]


KINDS = (
    Kind(operation=CreateController, weight=1, draw=draw_controller, possible=has_room),
    Kind(operation=ScaleController, weight=0.7, draw=draw_scale, possible=has_scaled),
    Kind(operation=DeleteController, weight=0.8, draw=draw_delete, possible=has_owners),
    Kind(operation=WriteStaticPod, weight=0.4, draw=draw_static),
    Kind(operation=RemoveStaticPod, weight=0.4, draw=draw_static_removal, possible=has_static),
)
