"""The KubeSchedulerConfiguration with the extender or the plugin in it.

Source: ``kubescheduler.config.k8s.io/v1`` and, for what ``--config`` switches off,
``cmd/kube-scheduler/app/options`` of Kubernetes 1.36: with ``--config`` the leader election flags still
count (``ApplyLeaderElectionTo``), those in ``ApplyDeprecated`` no longer do. Both ways start from the same
defaults, so a flag that is not given needs no entry.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import yaml

from gpushare_core.text import yaml_edit
from gpushare_core.text.json_object import Json
from gpushare_hostctl.decide.scheduler.edits import Edit, edited_document, edited_text
from gpushare_hostctl.decide.scheduler.extender_entry import ExtenderEntry
from gpushare_hostctl.decide.scheduler.plugin_entry import PluginEntry
from gpushare_hostctl.decide.scheduler.scheduler_flags import SchedulerFlags
from gpushare_hostctl.errors import NeedsPersonError, utf8_text, yaml_needs_person

EngineEntry = ExtenderEntry | PluginEntry
"""What knows the cards, as a configuration names it."""

_GROUP = "kubescheduler.config.k8s.io/"
_KIND = "KubeSchedulerConfiguration"
_LARGEST = 2**31 - 1
"""Of a number in a configuration; NaN compares as too large, too."""
_MAX_BACKOFF = 300
"""Seconds between two attempts of a pod of a dedicated kube-scheduler while others have to be scheduled.

Pods that an extender has refused are tried again after every event of the cluster, such as any bind: with the
usual 10 seconds some thousands of them take all attempts there are. While there is nobody else to schedule
kube-scheduler does not wait for it (``SchedulerPopFromBackoffQ``, since 1.33). Five minutes are what it lets
a pod rest at most when nothing happens (``DefaultPodMaxInUnschedulablePodsDuration``)."""
_AMONG = 5
"""Percent of the nodes among which a pod is placed by the plugin, and 100 nodes at least.

kube-scheduler stops looking once so many fit, and scores those: by default 42 % of 1,000 nodes and 10 % of
5,000, which takes most of its time. Among fewer, one more percent of the free cards is broken into, and far
more of the fast ones where a pool of nodes has faster cards than others: see docs/benchmarks.md."""
_FILE = "the scheduler's --config file"
_HEADER = "# Written by gpushare-hostctl; `gpushare-hostctl restore` removes it. Edits here are lost.\n"


def from_flags(flags: SchedulerFlags, engine: EngineEntry, *, header: str = _HEADER) -> bytes:
    """Returns the configuration for a scheduler that had no ``--config``, with ``header`` before it.

    Raises NeedsPersonError when a flag that has to be carried over cannot be read.
    """
    given = [(client, flags.value(client.flag)) for client in _CLIENT_FLAGS]
    connection = {client.field: client.parse(text) for client, text in given if text is not None}
    debugging = {
        "enableProfiling": flags.boolean("profiling"),
        "enableContentionProfiling": flags.boolean("contention-profiling"),
    }
    document = {
        "apiVersion": f"{_GROUP}v1",
        "kind": _KIND,
        **({"clientConnection": connection} if connection else {}),
        **{key: value for key, value in debugging.items() if value is not None},
        **engine.part(),
    }
    return (header + yaml.safe_dump(document, sort_keys=False)).encode()


@dataclass(frozen=True)
class DedicatedProfile:
    """A kube-scheduler beside the cluster's own: which pods it takes, and where its replicas have a Lease."""

    scheduler_name: str
    lease_namespace: str


def for_dedicated(profile: DedicatedProfile, engine: EngineEntry) -> bytes:
    """Returns the configuration of a kube-scheduler with extender or plugin, for pods of its name alone.

    With an extender it scores every node. A sample of the nodes may hold none with room on one card. And each
    sample would write other numbers of nodes into the pod that it refuses: a pod that has changed is tried
    again. With the plugin kube-scheduler looks until enough nodes fit, or it has seen all: few are enough.
    """
    serving: Json = {"schedulerName": profile.scheduler_name}
    document: Json = {
        "apiVersion": f"{_GROUP}v1",
        "kind": _KIND,
        "leaderElection": {
            "leaderElect": True,
            "resourceName": profile.scheduler_name,
            "resourceNamespace": profile.lease_namespace,
        },
    }
    if isinstance(engine, PluginEntry):
        document["profiles"] = [{**serving, "percentageOfNodesToScore": _AMONG, **engine.profile()}]
    else:
        document["podMaxBackoffSeconds"] = _MAX_BACKOFF
        document["profiles"] = [{**serving, "percentageOfNodesToScore": 100}]
        document["extenders"] = [engine.to_mapping()]
    return yaml.safe_dump(document, sort_keys=False).encode()


@yaml_needs_person()
def merge(content: bytes, engine: EngineEntry) -> bytes:
    """Returns somebody else's configuration with our part added, every other byte as it was.

    An extender with the same URL as ours is replaced. Raises NeedsPersonError for what kube-scheduler would
    refuse, and for an extender that would decide of our resources: one that binds or manages them.
    """
    text = utf8_text(content, name=_FILE)
    document = _checked(yaml_edit.first_document(text))
    if isinstance(engine, ExtenderEntry) and (former := _with_url(document, engine.url)):
        for index in reversed(former):
            text = yaml_edit.remove_item(text, ("extenders",), index=index)
        document["extenders"] = _extenders(yaml_edit.first_document(text))
    _check_conflicts(_extenders(document), engine)
    edits = engine.edits(document)
    with yaml_needs_person("with gpushare's part the scheduler's --config file"):
        return _edited(text, document, edits).encode()


@yaml_needs_person()
def delays_cache_until_active(content: bytes) -> bool:
    """Returns whether kube-scheduler is not ready before it leads: field ``delayCacheUntilActive``."""
    document = yaml_edit.first_document(utf8_text(content, name=_FILE))
    return isinstance(document, dict) and document.get("delayCacheUntilActive") is True


# In a configuration file an empty value means kube-scheduler's default; by flag it meant client-go's
# default, which is another one. So that is written out.
def _content_type(text: str) -> str:
    return text or "application/json"


def _rate(text: str) -> float:
    return _number("kube-api-qps", text, float) or 5.0


def _burst(text: str) -> int:
    return int(_number("kube-api-burst", text, int)) or 10


def _number(name: str, text: str, parse: Callable[[str], float]) -> float:
    try:
        number = parse(text)
        if not -_LARGEST <= number <= _LARGEST:
            raise ValueError(text)
        return number
    except ValueError as error:
        raise NeedsPersonError(f"the flag --{name}={text} of kube-scheduler is not a number") from error


@dataclass(frozen=True)
class _ClientFlag:
    """A flag that ``--config`` switches off, and the field of ``clientConnection`` that takes its value."""

    flag: str
    field: str
    parse: Callable[[str], Any]


_CLIENT_FLAGS = (
    _ClientFlag("kubeconfig", "kubeconfig", str),
    _ClientFlag("kube-api-content-type", "contentType", _content_type),
    _ClientFlag("kube-api-qps", "qps", _rate),
    _ClientFlag("kube-api-burst", "burst", _burst),
)


def _checked(document: Any) -> Json:
    has_kind = isinstance(document, dict) and document.get("kind") == _KIND
    if not has_kind or not str(document.get("apiVersion")).startswith(_GROUP):
        raise NeedsPersonError(f"the scheduler's --config file is not a {_KIND} of {_GROUP}v1; correct it")
    _extenders(document)
    return dict(document)


def _extenders(document: Json) -> list[Json]:
    extenders = document.get("extenders") or []
    if not isinstance(extenders, list) or not all(isinstance(entry, dict) for entry in extenders):
        raise NeedsPersonError("extenders in the scheduler's --config file is not a list of mappings")
    return extenders


def _with_url(document: Json, url: str) -> list[int]:
    return [
        index
        for index, entry in enumerate(_extenders(document))
        if str(entry.get("urlPrefix")).rstrip("/") == url.rstrip("/")
    ]


def _check_conflicts(others: list[Json], engine: EngineEntry) -> None:
    for entry in others:
        if entry.get("bindVerb") and (isinstance(engine, ExtenderEntry) or not entry.get("managedResources")):
            raise NeedsPersonError(
                f"the extender {entry.get('urlPrefix')} in the scheduler's --config file binds pods, and "
                "only one may bind those that share cards; remove it or use another scheduler backend"
            )
        _check_resources(entry, engine)


def _check_resources(entry: Json, engine: EngineEntry) -> None:
    items = entry.get("managedResources") or []
    managed = {str(item.get("name")) for item in items if isinstance(item, dict)}
    if both := sorted(managed & {*engine.resources}):
        raise NeedsPersonError(
            f"the extender {entry.get('urlPrefix')} in the scheduler's --config file manages "
            f"{', '.join(both)} already, and only one may decide about a resource; remove it there"
        )


def _edited(text: str, document: Json, edits: list[Edit]) -> str:
    try:
        changed = edited_text(text, edits)
        if yaml_edit.first_document(changed) == edited_document(document, edits):
            return changed
        reason = "something else would change"
    except yaml_edit.TooLongError:
        raise
    except yaml_edit.YamlEditError as error:
        reason = str(error)
    raise NeedsPersonError(
        "the scheduler's --config file is written in a way that nothing can be added to (aliases or "
        f"merge keys, perhaps: {reason}); write it out plainly"
    )
