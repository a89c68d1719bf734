"""A cluster in memory for the operator: the API server as far as it matters here, and everything that reacts
to it."""

import copy
import itertools
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from gpushare_core.api.names import COMPONENT_LABEL, CONTROL_PLANE_LABEL, FIELD_MANAGER, POLICY_LABEL
from gpushare_core.dialects.table import DIALECTS
from gpushare_core.kube import paths
from gpushare_core.kube.errors import ApiError
from gpushare_core.kube.response import Page
from gpushare_core.placement.modes.table import MODES
from gpushare_core.text.json_object import Json
from gpushare_operator.cluster.cache import Cache
from gpushare_operator.cluster.labels import COMMAND_LABEL, NODE_ANNOTATION, PLUGIN
from gpushare_operator.desired.names import Installation
from gpushare_operator.reconcile import CLUSTER, SCHEDULERS, PolicyReconciler, UnfinishedError

NAMESPACE = "gpushare-system"
DAEMON_SETS = paths.daemon_sets(NAMESPACE)
DEPLOYMENTS = paths.deployments(NAMESPACE)
JOBS = paths.jobs(NAMESPACE)
PODS = paths.pods(NAMESPACE)
MEMORY = "gpushare.io/memory"
AMOUNTS = ("capacity", "allocatable")
NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


class KilledError(BaseException):
    """The operator's process ended before its next write."""


@dataclass
class MemoryApi:
    """Objects by collection and name, with uids, generations, preconditions and finalizers."""

    objects: dict[str, dict[str, Json]] = field(default_factory=dict)
    writes: list[str] = field(default_factory=list)
    fuse: int | None = None
    """Writes that still succeed before the writer is killed."""
    refuse: Callable[[str], bool] = lambda _: False
    """Called with a write and the name of what it creates; returns whether the response is 500."""
    refusal: str = "refused by the test"
    rewrite: Callable[[str, Json], None] = lambda *_: None
    """Called with collection and object before it is stored; may change it, as an admission webhook may."""
    forbidden: set[str] = field(default_factory=set)
    """Paths that may not be read."""
    may: Callable[[Json], bool] = lambda _: True
    """Called with what a review asks for; returns whether somebody has that right."""
    protected: set[str] = field(default_factory=set)
    """Pods that PodDisruptionBudgets protect."""
    on_change: Callable[[str, str, Json], None] = lambda *_: None
    """Gets every change: collection, type of the watch event, object."""
    _versions: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    async def pages(
        self, path: str, *, limit: int, label_selector: str = "", field_selector: str = ""
    ) -> AsyncIterator[Page]:
        """All in one page, whatever ``limit`` says."""
        assert limit > 0
        if path in self.forbidden:
            raise ApiError(403, "Forbidden", path)
        items, version = await self.list_all(path, label_selector=label_selector)
        yield Page([item for item in items if _has_fields(item, field_selector)], version)

    async def list_all(self, path: str, *, label_selector: str = "") -> tuple[list[Json], str]:
        wanted = dict(pair.split("=") for pair in label_selector.split(",") if pair)
        items = [copy.deepcopy(body) for body in self.of(path).values()]
        matching = [item for item in items if wanted.items() <= item["metadata"].get("labels", {}).items()]
        return matching, str(next(self._versions))

    async def get(self, path: str) -> Json:
        if path in self.forbidden:
            raise ApiError(403, "Forbidden", path)
        collection, name = path.rsplit("/", 1)
        if name not in self.of(collection):
            raise ApiError(404, "NotFound", name)
        return copy.deepcopy(self.of(collection)[name])

    async def apply(self, path: str, body: Json) -> Json:
        self._write("apply", path)
        if path.endswith("/status"):
            return self._apply_conditions(path.removesuffix("/status"), body)
        collection, name = path.rsplit("/", 1)
        if name not in self.of(collection):
            return copy.deepcopy(self.put(collection, dict(body)))
        return self.change(collection, name, body)

    def _apply_conditions(self, path: str, body: Json) -> Json:
        """Of a list, merges only entries of the types that are named, as the schema says."""
        collection, name = path.rsplit("/", 1)
        self._check(collection, name, body["metadata"])
        present = (self.of(collection)[name].get("status") or {}).get("conditions") or []
        by_type = {condition["type"]: condition for condition in (*present, *body["status"]["conditions"])}
        return self.change(collection, name, {"status": {"conditions": [*by_type.values()]}})

    async def merge(self, path: str, body: Json) -> Json:
        self._write("merge", path)
        collection, name = path.removesuffix("/status").rsplit("/", 1)
        self._check(collection, name, body["metadata"])
        return self.change(collection, name, body, manager=FIELD_MANAGER)

    async def create(self, path: str, body: Json) -> Json:
        if path == paths.SUBJECT_REVIEWS:
            return self._review(path, body)
        self._write("create", path, body["metadata"]["name"])
        if path.endswith("/eviction"):
            return self._evict(path.removesuffix("/eviction"), body)
        if body["metadata"]["name"] in self.of(path):
            raise ApiError(409, "AlreadyExists", body["metadata"]["name"])
        return copy.deepcopy(self.put(path, dict(body)))

    def _review(self, path: str, body: Json) -> Json:
        if path in self.forbidden:
            raise ApiError(403, "Forbidden", path)
        return {"status": {"allowed": self.may(body["spec"])}}

    def _evict(self, path: str, body: Json) -> Json:
        collection, name = path.rsplit("/", 1)
        self._check(collection, name, body["deleteOptions"]["preconditions"])
        if name in self.protected:
            raise ApiError(429, "TooManyRequests", "it would violate the pod's disruption budget")
        held = self.of(collection)[name]
        held["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
        self._keep(collection, held, "MODIFIED")  # its kubelet stops it some time
        return {"kind": "Status", "status": "Success"}

    async def delete(self, path: str, *, uid: str = "") -> Json:
        self._write("delete", path)
        collection, name = path.rsplit("/", 1)
        self._check(collection, name, {"uid": uid})
        self.remove(collection, name)
        return {}

    def of(self, collection: str) -> dict[str, Json]:
        return self.objects.setdefault(collection, {})

    def put(self, collection: str, body: Json) -> Json:
        """Create an object as a user or controller would."""
        held = copy.deepcopy(body)
        version = str(next(self._versions))
        held["metadata"] = {
            "uid": f"uid-{version}",
            "generation": 1,
            "creationTimestamp": f"2026-11-21T11:{int(version) // 60 % 60:02}:{int(version) % 60:02}Z",
            **held["metadata"],
            "resourceVersion": version,
        }
        self._keep(collection, held, "ADDED")
        return held

    def restore(self, version: int) -> None:
        """As after a restart with etcd of a backup: versions go on from there. Nobody is told."""
        self._versions = itertools.count(version + 1)
        for held in (body for objects in self.objects.values() for body in objects.values()):
            held["metadata"]["resourceVersion"] = str(version)

    def remove(self, collection: str, name: str) -> None:
        """Delete as a user would: finalizers hold it up."""
        held = self.of(collection)[name]
        if held["metadata"].get("finalizers"):
            held["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
            self._keep(collection, held, "MODIFIED")
        else:
            self._drop(collection, name)

    def _keep(self, collection: str, body: Json, event: str) -> None:
        self.rewrite(collection, body)
        body["metadata"]["resourceVersion"] = str(next(self._versions))
        self.of(collection)[body["metadata"]["name"]] = body
        self.on_change(collection, event, copy.deepcopy(body))

    def _drop(self, collection: str, name: str) -> None:
        body = self.of(collection).pop(name)
        body["metadata"]["resourceVersion"] = str(next(self._versions))
        self.on_change(collection, "DELETED", body)

    def change(
        self, collection: str, name: str, patch: Mapping[str, Any], *, manager: str = "somebody"
    ) -> Json:
        """Changes an object, and records for labels and capacity who changed them last."""
        old = self.of(collection)[name]
        new = merged(old, patch)
        if new == old:
            return copy.deepcopy(old)
        if any(_at(new, path) != _at(old, path) for path in MANAGED_FIELDS):
            new["metadata"]["managedFields"] = _managed(old, new, manager)
        if new.get("spec") != old.get("spec"):
            new["metadata"]["generation"] += 1
        self._keep(collection, new, "MODIFIED")
        if new["metadata"].get("deletionTimestamp") and not new["metadata"].get("finalizers"):
            self._drop(collection, name)
        return copy.deepcopy(new)

    def _check(self, collection: str, name: str, wanted: Mapping[str, Any]) -> None:
        if name not in self.of(collection):
            raise ApiError(404, "NotFound", name)
        held = self.of(collection)[name]["metadata"]
        for key in ("uid", "resourceVersion"):
            if key in wanted and wanted[key] != held[key]:
                raise ApiError(409, "Conflict", f"{key} of {name}")

    def _write(self, verb: str, path: str, name: str = "") -> None:
        if self.fuse is not None:
            if self.fuse == 0:
                raise KilledError
            self.fuse -= 1
        if self.refuse(f"{verb} {path}/{name}" if name else f"{verb} {path}"):
            raise ApiError(500, "InternalError", self.refusal)
        self.writes.append(f"{verb} {path}")


def _has_fields(body: Json, selector: str) -> bool:
    pairs = (pair.partition("=") for pair in selector.split(",") if pair)
    return all(_field(body, path.split(".")) == value for path, _, value in pairs)


def _field(body: Any, path: list[str]) -> Any:
    return _field((body or {}).get(path[0], ""), path[1:]) if path else body


MANAGED_FIELDS = (("metadata", "labels"), ("status", "capacity"))


def _managed(old: Json, new: Json, manager: str) -> list[Json]:
    """As the API server notes it for updates: a label belongs to whoever changed its value last."""
    return [entry for path in MANAGED_FIELDS for entry in _managed_at(path, old, new, manager)]


def _managed_at(path: tuple[str, str], old: Json, new: Json, manager: str) -> Iterator[Json]:
    before, after, (outer, inner) = _at(old, path), _at(new, path), path
    owners = {
        key.removeprefix("f:"): entry["manager"]
        for entry in old["metadata"].get("managedFields", ())
        for key in entry["fieldsV1"].get(f"f:{outer}", {}).get(f"f:{inner}", {})
    }
    owners |= {key: manager for key, value in after.items() if before.get(key) != value}
    owned: dict[str, Json] = {}
    for key in after.keys() & owners.keys():
        owned.setdefault(owners[key], {})[f"f:{key}"] = {}
    for name, fields in owned.items():
        yield {"manager": name, "fieldsV1": {f"f:{outer}": {f"f:{inner}": fields}}}


def _at(body: Json, path: tuple[str, str]) -> Json:
    found: Json = (body.get(path[0]) or {}).get(path[1]) or {}
    return found


def merged(old: Any, patch: Any) -> Any:
    """RFC 7396."""
    if not isinstance(patch, Mapping):
        return copy.deepcopy(patch)
    base = dict(old) if isinstance(old, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            base.pop(key, None)
        else:
            base[key] = merged(base.get(key), value)
    return base


@dataclass
class Cluster:
    """The API server, its controllers, kubelets, plugins and control-plane nodes."""

    api: MemoryApi = field(default_factory=MemoryApi)
    edited: set[str] = field(default_factory=set)
    """Nodes whose scheduler is connected to the extender."""
    broken: dict[str, int] = field(default_factory=dict)
    """Runs of hostctl that still fail, by command."""
    hangs: set[str] = field(default_factory=set)
    """Commands of hostctl that do not end."""
    now: datetime = NOON
    cards: int = 2
    """That every plugin finds."""
    unfit: set[str] = field(default_factory=set)
    """Nodes whose kube-scheduler does not serve after the edit, so that hostctl undoes it."""

    def add_node(self, name: str, *, control_plane: bool = False, **labels: str) -> None:
        given = {**labels, **({CONTROL_PLANE_LABEL: ""} if control_plane else {})}
        status = {"conditions": [{"type": "Ready", "status": "True"}], "capacity": {}, "allocatable": {}}
        self.api.put(paths.NODES, {"metadata": {"name": name, "labels": given}, "status": status})

    def add_policy(self, name: str, *rules: Json, **extra: Any) -> None:
        self.api.put(paths.POLICIES, {"metadata": {"name": name}, "spec": {"nodes": list(rules), **extra}})

    def delete_policy(self, name: str) -> None:
        self.api.remove(paths.POLICIES, name)

    def serve(self, version: str = "v1.36.3", *policies: str) -> None:
        """Sets the API server's version, and the versions in which it has mutating policies."""
        self.api.put("", {"metadata": {"name": "version"}, "gitVersion": version})
        group = {"metadata": {"name": paths.ADMISSION.rpartition("/")[2]}}
        self.api.put("/apis", {**group, "versions": [{"version": policy} for policy in (*policies, "v1")]})
        names = ("mutatingadmissionpolicies", "mutatingadmissionpolicybindings")
        for policy in {*policies, "v1"}:
            served = [{"name": name} for name in names if policy in policies]
            self.api.put(paths.ADMISSION, {"metadata": {"name": policy}, "resources": served})

    def steps(self) -> list[Callable[[], None]]:
        """What may happen next by itself, in any order."""
        return [
            *self._scheduling(),
            *self._stopping(),
            *self._rolling_out(),
            *self._registering(),
            *self._running(),
        ]

    def _scheduling(self) -> Iterator[Callable[[], None]]:
        for pod in self._wanted_pods():
            present = self.api.of(PODS).get(pod["metadata"]["name"])
            if present is None or present["metadata"].get("annotations") != pod["metadata"].get(
                "annotations"
            ):
                yield partial(self._start, pod)

    def _start(self, pod: Json) -> None:
        self.api.put(PODS, pod)

    def _stopping(self) -> Iterator[Callable[[], None]]:
        wanted = {pod["metadata"]["name"] for pod in self._wanted_pods()}
        for name in self.api.of(PODS).keys() - wanted:
            yield partial(self.api.remove, PODS, name)

    def _wanted_pods(self) -> list[Json]:
        """Makes the pods of DaemonSets on the nodes of their selectors, and those of Deployments."""
        nodes = list(self.api.of(paths.NODES).values())
        deployed = [
            _pod(deployment, node)
            for deployment in self.api.of(DEPLOYMENTS).values()
            for node in nodes[: deployment["spec"]["replicas"]]
        ]
        return deployed + [
            _pod(daemon_set, node)
            for daemon_set in self.api.of(DAEMON_SETS).values()
            for node in self.api.of(paths.NODES).values()
            if _selects(daemon_set["spec"]["template"]["spec"], node["metadata"]["labels"])
        ]

    def _rolling_out(self) -> Iterator[Callable[[], None]]:
        for name, body in self.api.of(DEPLOYMENTS).items():
            generation, replicas = body["metadata"]["generation"], body["spec"]["replicas"]
            counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas"), replicas)
            status = {"observedGeneration": generation, **counts}
            if body.get("status") != status:
                yield partial(self._roll_out, name, status)

    def _roll_out(self, name: str, status: Json) -> None:
        self.api.change(DEPLOYMENTS, name, {"status": status})

    def _registering(self) -> Iterator[Callable[[], None]]:
        """A plugin answers its GPUShareNode's present generation, and the kubelet shows the units."""
        for name, share in self.api.of(paths.SHARE_NODES).items():
            is_late = share.get("status", {}).get("observedGeneration") != share["metadata"]["generation"]
            is_run = f"plugin-{share['spec']['policy']}-{name}" in self.api.of(PODS)
            if is_late and is_run and name in self.api.of(paths.NODES):
                yield partial(self._register, name)

    def _register(self, name: str) -> None:
        share = self.api.of(paths.SHARE_NODES)[name]
        status = {
            "observedGeneration": share["metadata"]["generation"],
            "units": {"total": 32, "allocated": 0},
            "cards": [{"uuid": f"GPU-{number}"} for number in range(self.cards)],
            "conditions": [
                {
                    "type": "Registered",
                    "status": "True",
                    "reason": "Registered",
                    "message": "",
                    "lastTransitionTime": "2026-11-21T12:00:00Z",
                }
            ],
        }
        self.api.change(paths.SHARE_NODES, name, {"status": status})
        names = _registered(share["spec"])
        shown = {"capacity": names, "allocatable": names}
        self.api.change(paths.NODES, name, {"status": shown})

    def _running(self) -> Iterator[Callable[[], None]]:
        for name, job in self.api.of(JOBS).items():
            if not job.get("status") and job["metadata"]["labels"][COMMAND_LABEL] not in self.hangs:
                yield partial(self._run, name)

    def _run(self, name: str) -> None:
        job = self.api.of(JOBS)[name]
        command = job["metadata"]["labels"][COMMAND_LABEL]
        node = job["metadata"]["annotations"][NODE_ANNOTATION]
        is_gone = node not in self.api.of(paths.NODES)  # its pod goes, and the Job fails
        fails = is_gone or self.broken.get(command, 0) > 0
        if fails and not is_gone:
            self.broken[command] -= 1
        if command == "install" and not is_gone:
            self.edited.add(node)  # even a run that fails may have edited something
        elif not fails:
            self.edited.discard(node)
        end = {"type": "Failed" if fails else "Complete", "status": "True"}
        if command == "install" and node in self.unfit:
            self.edited.discard(node)
            message = "Container hostctl for pod a/b failed with exit code 3 matching FailJob rule at index 0"
            end = {"type": "Failed", "status": "True", "reason": "PodFailurePolicy", "message": message}
        moment = {"lastTransitionTime": self.now.isoformat()}
        self.api.change(JOBS, name, {"status": {"conditions": [{**end, **moment}]}})

    def traces(self) -> dict[str, Any]:
        """Everything of ours that is anywhere."""
        nodes = self.api.of(paths.NODES).values()
        return {
            "objects": [
                name
                for kind in (paths.SHARE_NODES, DAEMON_SETS, DEPLOYMENTS, JOBS, PODS)
                for name in self.api.of(kind)
            ],
            "labels": [
                node["metadata"]["name"] for node in nodes if POLICY_LABEL in node["metadata"]["labels"]
            ],
            "capacity": [
                node for node in nodes if node["status"]["capacity"] or node["status"]["allocatable"]
            ],
            "schedulers": sorted(self.edited),
        }


def _registered(spec: Json) -> dict[str, str]:
    dialect, mode = DIALECTS[spec.get("dialect", "gpushare.io")], MODES[spec["mode"]]
    return {dialect.resource_name(mode.resource): "32"}


def _selects(pod: Json, labels: Json) -> bool:
    """Whether a DaemonSet's pod goes to a node: all labels of a selector match, or any term of an
    affinity."""
    if selector := pod.get("nodeSelector"):
        return bool(selector.items() <= labels.items())
    required = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return any(term["matchExpressions"][0]["key"] in labels for term in required["nodeSelectorTerms"])


def _pod(daemon_set: Json, node: Json) -> Json:
    metadata = daemon_set["spec"]["template"]["metadata"]
    labels = metadata["labels"]
    component, on = labels[COMPONENT_LABEL], node["metadata"]["name"]
    name = f"plugin-{labels[POLICY_LABEL]}-{on}" if component == PLUGIN else f"{component}-{on}"
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    return {"metadata": {**metadata, "name": name}, "spec": {"nodeName": on}, "status": status}


@dataclass
class Operator:
    """One process of the operator: it knows nothing but what it reads."""

    cluster: Cluster
    now: datetime = NOON
    asked: set[str] = field(default_factory=set)
    """Keys that the reconciler asked for."""

    def __post_init__(self) -> None:
        self.reconciler = PolicyReconciler(
            api=self.cluster.api,
            cache=Cache(),
            installation=Installation(namespace=NAMESPACE, image="gpushare:test"),
            now=lambda: self.now,
            enqueue=self.asked.add,
        )

    async def resync(self) -> None:
        await self.reconciler.resync()

    async def work(self, key: str) -> None:
        """As the queue does: work that failed is tried again later."""
        try:
            await self.reconciler.work(key)
        except UnfinishedError:
            return

    def work_keys(self) -> list[str]:
        return [*self.reconciler.cache.policies(), CLUSTER]


async def converge(cluster: Cluster, operator: Operator | None = None, *, rounds: int = 60) -> Operator:
    """Lets operator and cluster run until neither has anything to do; fails if they never stop."""
    working, idle = operator or Operator(cluster), 0
    for _ in range(rounds):
        before = len(cluster.api.writes)
        await working.resync()
        working.asked.clear()
        for key in working.work_keys():
            await working.work(key)
        cluster.now = working.now
        steps = cluster.steps()
        for step in steps:
            step()
        looks = SCHEDULERS in working.asked
        if looks:
            await working.work(SCHEDULERS)
        idle = 0 if steps or looks or len(cluster.api.writes) > before else idle + 1
        if idle == 2:
            return working  # also after the longest backoff
        working.now = datetime.fromtimestamp(working.now.timestamp() + 400, UTC)
    raise AssertionError(f"still busy after {rounds} rounds: {cluster.api.writes[-20:]}")
