"""What is left of gpushare after the last policy, object by object and file by file.

Residue is everything with our marks that is not in ``ALLOWED``, however it should have been removed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from gpushare_core.api.names import (
    COMPONENT_LABEL,
    DEDICATED_SCHEDULER,
    DIALECT_LABEL,
    EXTERNAL_SCHEDULER_LABEL,
    FIELD_MANAGER,
    GROUP,
    MANAGED_BY_LABEL,
    NODE_KIND,
    POLICY_KIND,
    POLICY_LABEL,
    STARTUP_TAINT,
)
from gpushare_core.api.share_node import ISOLATION_FOLDER
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.dialects.table import DIALECTS, RESOURCES
from gpushare_core.text.json_object import Json

ALLOWED = (
    (
        "what was installed: namespace, CustomResourceDefinitions, ServiceAccounts, RBAC, admission policies,"
        " the operator's Deployment, the Leases gpushare-operator, gpushare-extender,"
        " gpushare-extender-calls and gpushare-extender-books, the CSIStorageCapacity gpushare-wake-up"
    ),
    "annotations of pods that run: they keep their cards until they end, and their annotations with them",
    "the kubelet's checkpoint, which is the kubelet's own",
    f"on nodes, the label {EXTERNAL_SCHEDULER_LABEL}, which people set",
    f"the empty folder {ISOLATION_FOLDER}, which the kubelet made for plugins",
    "what people wrote for gpushare: inventories in /etc/gpushare, and log files, which they may still want",
)
"""All that may stay, for people; docs/audit.md repeats it."""

KUBELET_SECONDS = 300
"""For so long a kubelet keeps the capacity of a device plugin that has gone. Source:
``endpointStopGracePeriod`` of its device manager."""

JOB_FINALIZER = "batch.kubernetes.io/job-tracking"
"""On the pods of a Job until its controller has counted them. Source: KEP-2307."""

KEPT_FILES = ("etc/gpushare/", "var/log/")
"""Beginnings of paths on a host that may stay."""


@dataclass(frozen=True, slots=True, order=True)
class Residue:
    """One thing that is left."""

    where: str
    """The object as ``kind namespace/name``, or the host and the path."""
    sentence: str
    """What it is, and what to do."""
    passes: bool = False
    """Whether it goes by itself within ``KUBELET_SECONDS`` of a deletion."""


@dataclass(frozen=True, slots=True)
class HostFile:
    """A file or a folder on a host."""

    path: str
    """From the root of the host, without the slash at its beginning."""
    mentions_us: bool = False
    """Whether its content names our folder or our extender; for manifests and scheduler configurations."""


def residue(objects: Iterable[Json], hosts: Mapping[str, Iterable[HostFile]]) -> list[Residue]:
    """``objects``: whole objects as JSON, with ``kind``; ``hosts``: by name. Sorted."""
    of_objects = (left for item in objects for left in _of_object(item))
    of_hosts = (left for host, files in hosts.items() for file in files for left in _of_file(host, file))
    return sorted({*of_objects, *of_hosts})


def _of_object(item: Json) -> Iterator[Residue]:
    rule = _RULES.get(item.get("kind", ""), _of_made_object)
    metadata = item.get("metadata") or {}
    namespace, name = metadata.get("namespace", ""), metadata.get("name", "")
    where = f"{item.get('kind', 'object')} {f'{namespace}/' if namespace else ''}{name}"
    passes = item.get("kind") == "Pod" and _goes_by_itself(metadata)
    yield from (Residue(where, sentence, passes=passes) for sentence in rule(item))
    if item.get("kind") == "Node":
        yield from (Residue(where, sentence, passes=True) for sentence in _capacity(item, name))


def _of_policy(item: Json) -> Iterator[str]:
    name = item["metadata"]["name"]
    if "deletionTimestamp" in item["metadata"]:
        yield (
            "the policy is being deleted, and something is still in the way: its condition Ready says what;"
            f" see that the operator runs (kubectl describe gpusharepolicy {name})"
        )
    else:
        yield f"the policy still exists: nothing is undone before kubectl delete gpusharepolicy {name}"


def _of_share_node(item: Json) -> Iterator[str]:
    name, policy = item["metadata"]["name"], (item.get("spec") or {}).get("policy", "")
    yield (
        f"it goes with the policy {policy!r}: if that is gone, see that the operator runs, which deletes it;"
        f" without an operator: kubectl delete gpusharenode {name}"
    )


def _of_node(item: Json) -> Iterator[str]:
    metadata, name = item["metadata"], item["metadata"]["name"]
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    for key in sorted(filter(_is_our_key, labels)):
        if key != EXTERNAL_SCHEDULER_LABEL:
            yield f"the label {key}={labels[key]} is gpushare's: kubectl label node {name} {key}-"
    for key in sorted(filter(_is_our_key, annotations)):
        yield f"the annotation {key} is gpushare's: kubectl annotate node {name} {key}-"
    yield from _words_of_dialects(item, name)
    yield from _taints(item, name)


def _words_of_dialects(item: Json, name: str) -> Iterator[str]:
    """Labels and annotations of dialects may be another system's. Ours are

    1. the labels of the dialect that the node's own label names;
    2. whatever the operator wrote last, by the managed fields.
    """
    metadata = item["metadata"]
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    dialect = DIALECTS.get(labels.get(DIALECT_LABEL, ""))
    recorded = dialect.node_labels.keys() if dialect else set[str]()
    words = f"in the words of {dialect.name if dialect else 'a dialect'}"
    for key in sorted((recorded | _written_keys(item, "labels")) & labels.keys()):
        if not _is_our_key(key):
            yield f"the label {key} was set {words}: kubectl label node {name} {key}-"
    for key in sorted(_written_keys(item, "annotations") & annotations.keys()):
        if not _is_our_key(key):
            yield f"the annotation {key} was set {words}: kubectl annotate node {name} {key}-"


def _written_keys(item: Json, part: str) -> set[str]:
    """Returns the keys that the operator wrote last in ``part`` of a node's metadata or status."""
    written: set[str] = set()
    for fields in filter(_is_our_manager, item["metadata"].get("managedFields") or ()):
        for above in (fields.get("fieldsV1") or {}).values():
            written |= {key.removeprefix("f:") for key in (above.get(f"f:{part}") or {}) if key != "."}
    return written


def _taints(item: Json, name: str) -> Iterator[str]:
    for taint in (item.get("spec") or {}).get("taints") or ():
        if taint.get("key") == STARTUP_TAINT:
            yield (
                f"the taint {STARTUP_TAINT} waits for a plugin that will not come: kubectl taint node {name}"
                f" {STARTUP_TAINT}-, and remove it from the node's template"
            )


def _capacity(item: Json, name: str) -> Iterator[str]:
    """Yields the resources in the status that are ours:

    1. all with names of our own;
    2. numbers of cards that the operator wrote;
    3. zeros with a dialect's name, which the kubelet leaves of our plugin. Other numbers with such a name are
       of the system whose name it is.
    """
    status = item.get("status") or {}
    capacity, allocatable = status.get("capacity") or {}, status.get("allocatable") or {}
    shown = {**capacity, **allocatable}
    written = _written_keys(item, "capacity") | _written_keys(item, "allocatable")
    for resource in sorted((RESOURCES.keys() | written) & shown.keys()):
        is_own = resource in GPUSHARE.resources or resource in written
        is_zero = shown[resource] == "0" and resource.partition("/")[0] in DIALECTS
        if is_own or is_zero:
            path = resource.replace("/", "~1")
            yield (
                f"{_shown(capacity.get(resource, '0'), shown[resource], resource)}, then the operator"
                f" removes it; if it stays longer: kubectl patch node {name} --subresource=status --type=json"
                f' -p=\'[{{"op":"remove","path":"/status/capacity/{path}"}}]\''
            )


def _shown(capacity: str, allocatable: str, resource: str) -> str:
    """Returns what a node's status shows, and why it may for a while."""
    minutes = f"{KUBELET_SECONDS // 60} minutes"
    if capacity not in ("0", allocatable):
        return (
            f"its status shows a capacity of {capacity} of {resource}, none of it allocatable: its"
            " plugin no longer ran when the policy was deleted, and the kubelet keeps the capacity"
            f" of such a plugin for {minutes} (endpointStopGracePeriod)"
        )
    return (
        f"its status shows {allocatable} of {resource}: the kubelet writes that for {minutes} after the last"
        " plugin has gone"
    )


def _of_pod(item: Json) -> Iterator[str]:
    """Running pods keep their annotations."""
    labels = item["metadata"].get("labels") or {}
    if labels.get(MANAGED_BY_LABEL) == FIELD_MANAGER:
        yield (
            f"a pod of gpushare's {labels.get(COMPONENT_LABEL, 'program')} still exists: it goes with its"
            f" owner; if that is gone and its kubelet does not answer, delete the pod"
        )


def _goes_by_itself(metadata: Json) -> bool:
    """Whether Kubernetes deletes the pod some seconds after what made it: the garbage collector finds a pod
    by its owner, and a kubelet stops it first. The Job controller removes its own finalizer."""
    is_going = "deletionTimestamp" in metadata or bool(metadata.get("ownerReferences"))
    return is_going and not {*(metadata.get("finalizers") or ())} - {JOB_FINALIZER}


def _of_made_object(item: Json) -> Iterator[str]:
    """For every other kind: an object that the operator makes for policies has marks of that."""
    metadata = item.get("metadata") or {}
    labels = metadata.get("labels") or {}
    kind, name = str(item.get("kind", "")).lower(), metadata.get("name", "")
    # Other objects with the scheduler's name belong to the installation, and stay.
    is_scheduler = (item.get("kind"), name) == ("Deployment", DEDICATED_SCHEDULER)
    if labels.get(MANAGED_BY_LABEL) == FIELD_MANAGER or POLICY_LABEL in labels or is_scheduler:
        namespace = f" -n {metadata['namespace']}" if metadata.get("namespace") else ""
        yield (
            "the operator created it for a policy, and deletes it when it runs; otherwise: kubectl delete"
            f" {kind} {name}{namespace}"
        )
    elif any(map(_is_our_manager, metadata.get("managedFields") or ())):
        yield (
            "the operator wrote parts of it that are still there: compare it with what it was before, such as"
            " in your own manifests, and apply those"
        )


def _is_our_manager(fields: Json) -> bool:
    return bool(fields.get("manager") == FIELD_MANAGER)


def _is_our_key(key: str) -> bool:
    prefix = key.partition("/")[0]
    return prefix == GROUP or prefix.startswith(f"{GROUP}.") or prefix.endswith(f".{GROUP}")


_RULES: Mapping[str, Callable[[Json], Iterator[str]]] = {
    POLICY_KIND: _of_policy,
    NODE_KIND: _of_share_node,
    "Node": _of_node,
    "Pod": _of_pod,
}


def _of_file(host: str, file: HostFile) -> Iterator[Residue]:
    where = f"host {host}, /{file.path}"
    if file.path.startswith(KEPT_FILES):
        return
    name = file.path.rpartition("/")[2]
    if file.path.startswith("etc/kubernetes/gpushare/") or file.path == "etc/kubernetes/gpushare":
        yield Residue(
            where,
            "keys, backups and configuration of the connection to kube-scheduler: first see that"
            " kube-scheduler.yaml does not use them any more, then run gpushare-hostctl restore on that host,"
            " or remove the folder",
        )
    elif file.path.startswith("etc/kubernetes/") and file.mentions_us:
        yield Residue(
            where,
            "it still names gpushare's extender or folder, so kube-scheduler asks an extender that is gone:"
            " run gpushare-hostctl restore on that host while the backup is there, otherwise remove these"
            " lines",
        )
    elif file.path.startswith("var/lib/kubelet/device-plugins/") and _is_our_socket(name):
        yield Residue(
            where,
            "the socket of a plugin that is gone: nobody listens there; rm it, or restart the kubelet, which"
            " empties the folder",
        )
    elif f"/{file.path}".startswith(f"{ISOLATION_FOLDER}/"):
        yield Residue(
            where,
            "it holds containers to their units, and only a plugin removes it: rm it when"
            " no such container runs there any more; a container that restarts without it gets an empty"
            " folder in its place",
        )


def _is_our_socket(name: str) -> bool:
    """A socket has a hidden name until it is served, and another one during each registration: a plugin that
    was killed may leave either."""
    return name.startswith(".gpushare-") or (name.startswith("gpushare-") and name.endswith(".sock"))
