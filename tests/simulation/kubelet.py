"""A kubelet without sockets: admits as ``devicemanager.ManagerImpl`` does, ends pods, restarts, forgets.

It knows pods by UID. One that was deleted by force it forgets as soon as it hears of that, before it admits
another one of that name. Source: ``Merge`` of ``pkg/kubelet/config``, removals first. So it is with a static
pod whose file goes, or is written anew.
"""

import asyncio
import random
from collections.abc import Collection, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.books import Given, preference_request
from tests.simulation.known_pod import KnownPod, is_over, name_of
from tests.simulation.listing import listed_pod
from tests.simulation.static_pods import Manifests, Mirrors, is_mirror, is_static
from tests.simulation.virtual_time import seconds

from gpushare_core.dialects.table import RESOURCES
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.follow import Collection as Followed
from gpushare_core.kube.follow import Listed, follow
from gpushare_core.kube.paths import PODS, pod_path
from gpushare_core.kube.request import ApiRequest
from gpushare_core.placement.requests import ResourceRequest, read_request
from gpushare_core.text.json_object import Json
from gpushare_plugin.decide.admit.preferred_allocation import NothingFitsError
from gpushare_plugin.decide.units.errors import UnusableUnitsError
from gpushare_plugin.kubelet.allocator import Allocator, NothingOfferedError
from gpushare_plugin.kubelet.proto import podresources_pb2 as resources

REFUSALS = (NothingFitsError, NothingOfferedError, UnusableUnitsError)
CALL = 0.002
"""Seconds that a call to a plugin takes."""
REMOVAL = 0.02
"""Seconds until it gives the units of a pod free that was deleted by force: it does not wait for the
containers.

Source: ``HandlePodRemoves`` and ``GetActivePods`` of the kubelet (1.36).
"""
HEARING = 2.0
"""Seconds after its start within which it asks the API server for its pods; PodResources respond earlier."""
SETTLED = 1.0
"""Seconds after an Allocate until all books have it."""
SUCCEEDED: Json = {"phase": "Succeeded"}
RUNNING: Json = {"phase": "Running", "startTime": "2026-11-21T10:00:00Z"}


class RefusedError(Exception):
    """The pod is not admitted; the text says why."""


@dataclass(slots=True)
class SimulatedKubelet:
    """Its files and its processes outlive a restart; the plugins' lists do not."""

    node: str
    client: KubeClient
    dice: random.Random
    pods: dict[str, KnownPod] = field(default_factory=dict)
    """By UID."""
    devices: dict[str, dict[str, str]] = field(default_factory=dict)
    """Name of a resource -> ID -> health, as of the last list."""
    allocators: dict[str, Allocator] = field(default_factory=dict)
    """Of the plugins that are registered."""
    silent: bool = False
    """Whether PodResources do not answer."""
    checkpoint: list[tuple[str, str, Given]] = field(default_factory=list)
    """UID, container, and what it was given; as it was written last: pods that ended since are in it."""
    gave_at: float = 0.0
    """When it gave units last."""
    is_up: bool = True
    grace: float = 0.3
    """Seconds that containers take to end."""
    bodies: dict[str, Json] = field(default_factory=dict)
    """UID -> the pod, as the API server shows it."""
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _tasks: dict["asyncio.Task[None]", None] = field(default_factory=dict)
    _over: dict[str, Json] = field(default_factory=dict)
    """UID -> last status of pods that were refused or have ended, even those that are deleted."""
    _leaving: dict[str, None] = field(default_factory=dict)
    """Pods that are being deleted from the API server."""
    synced: bool = False
    starts: int = 0
    lent: tuple[str, dict[str, list[str]]] = ("", {})
    """UID of the pod that it admitted last, and resource -> units that ordinary init containers still lend.

    Source: ``devicesToReuse`` of ``devicemanager.ManagerImpl.Allocate``.
    """
    shown: dict[str, None] = field(default_factory=dict)
    """Pods that it has heard of since its start: it lists no others. Source: ``GetActivePods``."""
    manifests: Manifests = field(init=False)
    mirrors: Mirrors = field(init=False)

    def __post_init__(self) -> None:
        self.manifests = Manifests(self.node)
        self.mirrors = Mirrors(self.client, self.dice, self.manifests, self.notify)

    # Life

    def start(self) -> None:
        self.is_up = True
        self.synced = False
        self.starts += 1
        self.shown.clear()
        for pod in self.pods.values():
            pod.is_admitted_again = bool(pod.down or pod.forgotten())
        self._find_static_pods()
        every = self._show_for_ever, self._admit_for_ever, self._end_for_ever, self._mirror_for_ever
        for run in (self._follow, *every):
            self._spawn(run())

    def _find_static_pods(self) -> None:
        """After a restart the kubelet tries refused pods again, also when their files come back later."""
        for uid in self.mirrors.statuses:
            self._over.pop(uid, None)
        self.mirrors.restart()
        for uid in self.manifests.pods:
            if uid in self.pods and self.pods[uid].is_running:
                self.mirrors.statuses[uid] = RUNNING

    @property
    def refused(self) -> Collection[str]:
        """UIDs of pods that it does not run, whatever the API server has."""
        return self._over

    def stop(self) -> None:
        """Containers run on."""
        self.is_up = False
        for task in [*self._tasks]:
            task.cancel()
        self._tasks.clear()
        self.devices.clear()
        self.allocators.clear()
        self._leaving.clear()
        self.lent = ("", {})
        self._leave_half_admitted()

    def _leave_half_admitted(self) -> None:
        for pod in self.pods.values():
            pod.ending = False
        for pod in [pod for pod in self.pods.values() if not pod.is_running]:
            pod.is_half_admitted = True
            if not pod.held:
                del self.pods[pod.uid]

    def _forget_half_admitted(self) -> None:
        """Those that went meanwhile."""
        for pod in [pod for pod in self.pods.values() if pod.is_half_admitted]:
            body = self._configured().get(pod.uid)
            if body is None or is_over(body) or "deletionTimestamp" in body["metadata"]:
                del self.pods[pod.uid]

    async def until_settled(self) -> None:
        """Waits until everything that it gave can be in some other book."""
        for _ in range(50):
            if seconds() - self.gave_at >= SETTLED:
                return
            await asyncio.sleep(0.1)

    def lose_checkpoint(self) -> None:
        """Loses the checkpoint: its file is deleted, and the kubelet restarts. Containers run on, their units
        are free."""
        self.stop()
        for pod in self.pods.values():
            pod.held = {}
        self.pods = {uid: pod for uid, pod in self.pods.items() if pod.is_running}
        self.write_checkpoint()
        self.start()

    def _spawn(self, run: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(run)
        self._tasks[task] = None
        task.add_done_callback(lambda ended: self._tasks.pop(ended, None))

    # What the API server says

    async def _follow(self) -> None:
        await asyncio.sleep(self.dice.uniform(0.0, HEARING))
        selector = f"spec.nodeName={self.node}"
        async for event in follow(self.client, Followed(PODS, field_selector=selector)):
            if isinstance(event, Listed):
                self.bodies = {item["metadata"]["uid"]: item for item in event.items}
                self.synced = True
                self._report_again()
            elif event.kind == "DELETED":
                self.bodies.pop(event.item["metadata"]["uid"], None)
            else:
                self.bodies[event.item["metadata"]["uid"]] = event.item
                self._report_end_again(event.item)
            self._forget_half_admitted()
            self.notify()

    def _report_again(self) -> None:
        """What a restart kept from being told."""
        for uid, body in self.bodies.items():
            pod = self.pods.get(uid)
            if pod is not None and pod.is_running and body["status"]["phase"] == "Pending":
                self._spawn(self._report_running(pod))
            self._report_end_again(body)

    def _report_end_again(self, body: Json) -> None:
        """An earlier status may have arrived after the last one: the API server then shows a running pod that
        does not run.

        Source: ``needsReconcile`` of the kubelet's status manager.
        """
        status = self._over.get(body["metadata"]["uid"])
        if status is not None and not is_over(body):
            ended = KnownPod(body, read_request(body["spec"], RESOURCES))
            self._spawn(self._write_status(ended, status))

    def notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _show_for_ever(self) -> None:
        """It hears of its pods all at once, and takes one after the other: the next one when it has admitted
        this one once more. Source: ``HandlePodAdditions``."""
        while True:
            changed = self._changed
            heard = self._configured()
            for uid in [uid for uid in self.pods if uid in heard and uid not in self.shown]:
                await asyncio.sleep(self.dice.uniform(0.0, 0.3))
                self.shown[uid] = None
                self.notify()
                await self._until_admitted_again(uid)
            await changed.wait()

    async def _until_admitted_again(self, uid: str) -> None:
        while True:
            changed = self._changed
            if uid not in self.pods or not self.pods[uid].is_admitted_again:
                return
            await changed.wait()

    async def _mirror_for_ever(self) -> None:
        while True:
            changed = self._changed
            for work in self.mirrors.due(self.bodies) if self.synced else ():
                self._spawn(work)
            await changed.wait()

    def _configured(self) -> dict[str, Json]:
        """Returns the pods that the kubelet has to run and has heard of, by UID: static pods first."""
        of_api = self.bodies if self.synced else {}
        return {**self.manifests.pods, **{uid: body for uid, body in of_api.items() if not is_mirror(body)}}

    # Admission

    async def _admit_for_ever(self) -> None:
        """One pod after the other."""
        while True:
            changed = self._changed
            configured = self._configured()
            waiting = [body for uid, body in configured.items() if self._is_new(uid, body, configured)]
            if again := [shown_pod for shown_pod in self._shown_pods() if shown_pod.is_admitted_again]:
                await self._admit_again(again[0])
                continue
            if down := [shown_pod for shown_pod in self._shown_pods() if shown_pod.down - shown_pod.failing]:
                await self._start_again(down[0])
                continue
            if not waiting:
                await changed.wait()
                continue
            await self._admit(waiting[0])

    def _is_new(self, uid: str, body: Json, configured: Mapping[str, Json]) -> bool:
        over = is_over(body) or "deletionTimestamp" in body["metadata"]
        if any(pod.name == name_of(body) and pod.uid not in configured for pod in self.pods.values()):
            return False  # that one is removed first
        is_known = uid in self.pods and not self.pods[uid].is_half_admitted
        return not is_known and uid not in self._over and not over

    async def _admit(self, body: Json) -> None:
        uid = body["metadata"]["uid"]
        pod = self.pods.setdefault(uid, KnownPod(body, read_request(body["spec"], RESOURCES)))
        pod.is_half_admitted = False
        self.shown[uid] = None
        try:
            await self._give_all(pod)
        except (RefusedError, *REFUSALS) as error:
            failed = {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": str(error)}
            self._over[pod.uid] = failed
            del self.pods[pod.uid]
            self._spawn(self._write_status(pod, failed))
            return
        pod.is_running = True
        pod.seen = dict(pod.held)
        self.notify()
        self._spawn(self._report_running(pod))

    async def _report_running(self, pod: KnownPod) -> None:
        await asyncio.sleep(self.dice.uniform(0.0, 0.1))
        if not pod.ending:
            await self._write_status(pod, RUNNING)

    async def _write_status(self, pod: KnownPod, status: Json) -> None:
        if is_static(pod.body):
            self.mirrors.statuses[pod.uid] = status
            self.notify()
            return
        body = {"metadata": {"uid": pod.uid}, "status": status}
        await self._send_for_sure(ApiRequest(method="PATCH", path=f"{pod_path(*pod.name)}/status", body=body))

    async def _send_for_sure(self, request: ApiRequest) -> None:
        while True:
            try:
                await self.client.send(request)
            except ApiError:
                return
            except UnreachableError:
                await asyncio.sleep(0.5)
            else:
                return

    async def _give_all(self, pod: KnownPod) -> None:
        request = pod.request
        names = dict.fromkeys(name for resource in request.resources for name in resource.containers)
        await self._give_to(pod, [*names], request.resources)

    async def _admit_again(self, pod: KnownPod) -> None:
        """It takes those containers for running alone that run: ordinary init containers have ended.

        What no plugin offers yet it does not know. Source: ``isContainerAlreadyRunning``,
        ``isDevicePluginResource``.
        """
        names = [*sorted(pod.request.init_containers), *sorted(pod.down)]
        try:
            await self._give_to(pod, names, self._known(pod))
        except (RefusedError, *REFUSALS) as error:
            failed = {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": str(error)}
            if is_static(pod.body):
                self._over[pod.uid] = failed
            self._spawn(self._write_status(pod, failed))
        pod.is_admitted_again = False
        self.notify()

    def _known(self, pod: KnownPod) -> list[ResourceRequest]:
        return [resource for resource in pod.request.resources if resource.name in self.allocators]

    def restart_container(self, uid: str, name: str) -> None:
        """The container has ended by itself, and the kubelet starts it again."""
        pod = self.pods.get(uid)
        if pod is not None and pod.is_running and name in pod.seen.keys() | pod.bare:
            pod.seen.pop(name, None)
            pod.bare.discard(name)
            pod.down.add(name)
            self.notify()

    async def _start_again(self, pod: KnownPod) -> None:
        """It asks for what it does not know of the container. Where that is refused it tries again later.

        Source: ``GetDeviceRunContainerOptions`` of ``devicemanager.ManagerImpl``.
        """
        name = min(pod.down - pod.failing)
        try:
            await self._give_to(pod, [name], self._known(pod))
        except (RefusedError, *REFUSALS):
            pod.failing.add(name)
            pod.refusals += 1
            self._spawn(self._try_later(pod, name))
        else:
            pod.down.discard(name)
            pod.refusals = 0
            if given := pod.held.get(name):
                pod.seen[name] = given
            else:
                pod.bare.add(name)

    async def _try_later(self, pod: KnownPod, name: str) -> None:
        try:
            await asyncio.sleep(self.dice.uniform(0.5, 1.5))
        finally:
            pod.failing.discard(name)
        self.notify()

    def _reusable(self, pod: KnownPod) -> dict[str, list[str]]:
        if self.lent[0] != pod.uid:
            self.lent = (pod.uid, {})
        return self.lent[1]

    async def _give_to(self, pod: KnownPod, names: Sequence[str], asking: Sequence[ResourceRequest]) -> None:
        lent = self._reusable(pod)
        for container in names:
            for asked in asking:
                if amount := asked.containers.get(container, 0):
                    before = lent.get(asked.name, [])
                    has = [grant for grant in pod.held.get(container, ()) if grant.resource == asked.name]
                    given = has[0] if has else await self._give(asked.name, amount, before)
                    if not has:
                        pod.held.setdefault(container, []).append(given)
                    self.write_checkpoint()
                    kept = [unit for unit in before if unit not in given.ids]
                    ordinary = container in pod.request.init_containers
                    lent[asked.name] = [*kept, *given.ids] if ordinary else kept

    async def _give(self, name: str, amount: int, lent: list[str]) -> Given:
        ids = lent[:amount]
        if len(ids) < amount:
            ids = await self._choose(name, amount, ids)
        await asyncio.sleep(CALL)
        answer = await self._allocator(name).allocate(ids)
        self.gave_at = seconds()
        return Given(name, [*ids], answer.variables)

    async def _choose(self, name: str, amount: int, reused: list[str]) -> list[str]:
        free = self.free(name)
        if len(free) + len(reused) < amount:
            raise RefusedError(f"Allocate failed: {name}: Requested: {amount}, Available: {len(free)}")
        await asyncio.sleep(CALL)
        asked = preference_request([*free, *reused], reused, amount)
        preferred = await self._allocator(name).prefer(asked)
        usable = {*reused, *self.free(name)}
        chosen = dict.fromkeys([*reused, *preferred, *self.free(name)])
        return [unit for unit in chosen if unit in usable][:amount]

    def _allocator(self, name: str) -> Allocator:
        if name not in self.allocators:
            raise RefusedError(f"cannot allocate unregistered device {name}")
        return self.allocators[name]

    # The end of pods

    async def _end_for_ever(self) -> None:
        while True:
            changed = self._changed
            for pod in self.pods.values():
                if pod.is_running and not pod.ending and self._must_end(pod.uid):
                    pod.ending = True
                    self._spawn(self._end(pod))
            for uid, body in self.bodies.items():
                is_ended = uid not in self.pods | self._leaving and not is_mirror(body)
                if "deletionTimestamp" in body["metadata"] and is_ended:
                    self._leaving[uid] = None
                    self._spawn(self._delete(body))
            await changed.wait()

    def _must_end(self, uid: str) -> bool:
        body = self._configured().get(uid)
        if not self.synced:
            return False
        if uid in self._over and uid in self.manifests.pods:
            return True
        return body is None or "deletionTimestamp" in body["metadata"] or is_over(body)

    async def _end(self, pod: KnownPod) -> None:
        try:
            await asyncio.sleep(
                self.dice.uniform(0.2, 1.0) * (self.grace if pod.uid in self.bodies else REMOVAL)
            )
        except asyncio.CancelledError:
            pod.ending = False
            raise
        del self.pods[pod.uid]
        if not is_static(pod.body):  # its file may come back as it was
            self._over[pod.uid] = SUCCEEDED
        if self.dice.random() < 0.5:
            self.write_checkpoint()
        self.notify()

    async def _delete(self, body: Json) -> None:
        """The last step of a graceful deletion is the kubelet's."""
        metadata = body["metadata"]
        path = pod_path(metadata["namespace"], metadata["name"])
        try:
            await self._send_for_sure(
                ApiRequest(method="DELETE", path=path, body={"metadata": {"uid": metadata["uid"]}})
            )
        finally:
            self._leaving.pop(metadata["uid"], None)

    def finish(self, uid: str) -> None:
        """The containers of a pod end by themselves."""
        pod = self.pods.get(uid)
        if pod is not None and pod.is_running and not pod.ending and self.is_up:
            pod.ending = True
            self._spawn(self._finish(pod))

    async def _finish(self, pod: KnownPod) -> None:
        """The API server is told when the containers have ended. Source: ``SyncTerminatedPod``."""
        await self._end(pod)
        await self._write_status(pod, SUCCEEDED)

    # Its books

    def free(self, name: str) -> list[str]:
        taken = {
            unit
            for pod in self.pods.values()
            for given in pod.held.values()
            for grant in given
            if grant.resource == name
            for unit in grant.ids
        }
        ids = self.devices.get(name, {})
        free = [unit for unit, health in ids.items() if health == "Healthy" and unit not in taken]
        self.dice.shuffle(free)
        return free

    def write_checkpoint(self) -> None:
        self.checkpoint = [*self.entries()]

    def entries(self) -> Iterator[tuple[str, str, Given]]:
        for pod in self.pods.values():
            for container, given in pod.held.items():
                yield from ((pod.uid, container, grant) for grant in given)

    def _shown_pods(self) -> list[KnownPod]:
        return [pod for uid, pod in self.pods.items() if uid in self.shown]

    def listed(self) -> resources.ListPodResourcesResponse:
        return resources.ListPodResourcesResponse(pod_resources=[*map(listed_pod, self._shown_pods())])
