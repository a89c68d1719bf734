"""More of what was mended: what an extender believes when it binds, played by its real binder."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import msgspec
from tests.component.audit.cures import Cure, Patch
from tests.component.audit.scene import NODE, Scene
from tests.fakes.books import NOW, Pod
from tests.fakes.extender_clock import FakeClock

from gpushare_core import allocation_annotation as core_allocation
from gpushare_core.audit.difference import DifferenceKind
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.kube.errors import UnreachableError
from gpushare_core.kube.request import ApiRequest
from gpushare_core.placement.requests import PodRequest, ResourceClass, ResourceRequest
from gpushare_core.scheduling.objects.pod_reference import PodReference
from gpushare_extender.bind.binder import Binder
from gpushare_extender.bind.binding_write import BindingWrite
from gpushare_extender.bind.deadlines import BindTiming
from gpushare_extender.decide.waiting.expected_requests import ExpectedRequest

T = TypeVar("T")


@dataclass(slots=True)
class PodApi:
    """The API server, as far as a binder needs it, with one pod."""

    pod: Pod
    before_sending: Callable[[], None] = lambda: None
    """What happens to each Binding first; it may raise."""
    sent: int = field(default=0, init=False)

    async def read(self, _request: ApiRequest, *, shape: type[T]) -> T:
        return msgspec.convert(self.pod.body, shape)

    async def send(self, request: ApiRequest) -> None:
        self.sent += 1
        self.before_sending()
        binding = request.body or {}
        self.pod.body["metadata"]["annotations"] = binding["metadata"]["annotations"]
        self.pod.body["spec"]["nodeName"] = binding["target"]["name"]


def bind(scene: Scene, api: PodApi, permit: Callable[[], Awaitable[int]]) -> None:
    """By the real binder and the extender's ledger; then every watch has shown what became of it."""
    clock, pod = FakeClock(), api.pod
    timing = BindTiming(clock=clock, now=lambda: NOW, sleep=clock.sleep)
    client: Any = api
    binder = Binder(client, scene.cluster.ledger, permit, timing)
    asyncio.run(binder.bind(PodReference("default", pod.name.name, pod.uid), NODE))
    if pod.node:
        scene.cluster.show(pod)
    else:
        del scene.cluster.pods[pod.name.name]


async def only_extender() -> int:
    return 1


FORGED = PodRequest((ResourceRequest(GPUSHARE.memory_resource, ResourceClass.MEMORY, 1, {"main": 1}),))


def believe_the_caller(patch: Patch) -> None:
    """A filter call had said what the pod asks for, and of the first one it lied."""
    read = Binder._read_request

    async def as_called(binder: Binder, pod: PodReference) -> ExpectedRequest:
        known = await read(binder, pod)
        return replace(known, request=FORGED) if pod.name == "pod-1" else known

    patch.setattr(Binder, "_read_request", as_called)


def a_filter_call_is_forged(scene: Scene) -> None:
    scene.node_with(16)
    first, second = scene.create(12), scene.create(12)
    bind(scene, PodApi(first), only_extender)
    bind(scene, PodApi(second), only_extender)
    scene.admit(first)
    scene.look()
    scene.must_not(DifferenceKind.OVER_COUNTED)
    scene.admit_all()
    scene.settle()


def send_again_whoever_had_the_lease(patch: Patch) -> None:
    async def permitted(write: BindingWrite) -> None:
        await write.permit()

    patch.setattr(BindingWrite, "_require_same_holding", permitted)


def the_answer_to_a_binding_is_lost_while_the_lease_is_elsewhere(scene: Scene) -> None:
    """It never took effect; the other extender gave the card away, and this one sent it again."""
    scene.node_with(16)
    pod = scene.create(12)
    api = PodApi(pod)

    def cut_off() -> None:
        if api.sent == 1:
            bind_by_another_extender(scene)
            raise UnreachableError("no answer")

    async def permit() -> int:
        return 2 if api.sent else 1

    api.before_sending = cut_off
    bind(scene, api, permit)
    scene.cluster.restart_extender()
    scene.must_not(DifferenceKind.OVER_COUNTED)
    scene.admit_all()
    scene.settle()


def bind_by_another_extender(scene: Scene) -> None:
    """Its ledger follows from what the API server has."""
    cluster, own = scene.cluster, scene.cluster.ledger
    cluster.restart_extender()
    cluster.schedule_unseen(scene.create(12))
    cluster.ledger = own


def believe_what_is_said_twice(patch: Patch) -> None:
    patch.setattr(core_allocation, "_beginning", lambda _: "{")


def an_annotation_says_its_node_twice(scene: Scene) -> None:
    """The admission policies read the first one, and a decoder the last: the plugin of a node that was broken
    into booked units elsewhere."""
    scene.node_with(16)
    scene.node_with(16, name="n2")
    pod = scene.promise(12)
    scene.admit(pod)
    true = pod.body["metadata"]["annotations"][GPUSHARE.allocation_annotation]
    other = "n2" if pod.node == NODE else NODE
    forged = f'{true[:-1]},"node":"{other}"}}'.replace(f'"{pod.node}-0"', f'"{other}-0"')
    scene.cluster.annotate(pod, {GPUSHARE.allocation_annotation: forged})
    scene.must_not(DifferenceKind.TWO_NODES)
    scene.settle()


BIND_CURES: Sequence[Cure] = (
    Cure(
        name="a-pod-s-request-is-read-from-the-api",
        was="A forged filter call made a pod of 12 units count as one (A6)",
        take_out=believe_the_caller,
        provoke=a_filter_call_is_forged,
        kind=DifferenceKind.OVER_COUNTED,
        card="n1-0",
    ),
    Cure(
        name="nothing-is-sent-again-after-the-lease-was-elsewhere",
        was="A Binding was sent again though another extender had bound meanwhile: 24 of 16 (A8)",
        take_out=send_again_whoever_had_the_lease,
        provoke=the_answer_to_a_binding_is_lost_while_the_lease_is_elsewhere,
        kind=DifferenceKind.OVER_COUNTED,
        card="n1-0",
    ),
    Cure(
        name="an-allocation-says-a-thing-once",
        was="A plugin could book units on another node by saying `node` twice (A7)",
        take_out=believe_what_is_said_twice,
        provoke=an_annotation_says_its_node_twice,
        kind=DifferenceKind.TWO_NODES,
        pod="default/pod-1",
    ),
)
