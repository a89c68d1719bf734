"""The plugin of our own kube-scheduler in the profiles of a KubeSchedulerConfiguration.

``scheduler/config.yaml`` says the same of one profile, with the reasons. Source for how a profile's lists are
put together: ``expandMultiPointPlugins`` in ``pkg/scheduler/framework/runtime`` of Kubernetes 1.36.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gpushare_core.dialects.table import SHARED_RESOURCES
from gpushare_core.text.json_object import Json
from gpushare_core.text.yaml_edit import YamlPath
from gpushare_hostctl.decide.scheduler.edits import AddEntry, AddItem, Edit
from gpushare_hostctl.errors import NeedsPersonError

PLUGIN = "GPUShare"
GATE = "GPUShareGate"
"""Its plugin that keeps pods which wait for a card out of the scheduler's queues."""
_GATES = "preEnqueue"
FIRST = (_GATES, "preFilter", "filter", "postFilter", "bind")
"""The extension points at which it comes before all others."""
OTHERS = ("preScore", "score", "reserve")
"""Those at which any place will do, which ``multiPoint`` gives it where nothing is switched off."""
_MULTI_POINT = "multiPoint"
_FIT = "NodeResourcesFit"
_DEFAULT_PROFILE = "default-scheduler"
_EVERYTHING = {"name": "*"}


@dataclass(frozen=True, kw_only=True)
class PluginEntry:
    """What a kube-scheduler with the plugin is told of it."""

    lease_namespace: str
    """Of the Lease that is held by whoever binds pods to cards, be it an extender or the plugin."""
    resources: tuple[str, ...]
    """Those that pods ask for, whether or not nodes offer them. No extender may decide of them."""
    weight: int
    """Of its scores."""
    image: str = ""
    """Of the kube-scheduler that has it; empty where the pod has that image anyway."""

    effect = "places pods by the plugin"
    """What kube-scheduler does with it."""
    needs_keys = False

    def __str__(self) -> str:
        return f"the image {self.image}"

    @property
    def decided_by_plugin(self) -> list[str]:
        """Returns the resources of which the plugin alone decides what is free. Others' plugins offer the
        shared names, too: of these the scheduler counts the sums of each node as ever."""
        return [name for name in self.resources if name not in SHARED_RESOURCES]

    def profile(self) -> Json:
        """Returns what a profile has to say: fields ``plugins`` and ``pluginConfig``."""
        points = (_MULTI_POINT, *FIRST)
        return {
            "plugins": {point: {"enabled": [self._enabled(point)]} for point in points},
            "pluginConfig": [self._own_arguments(), self._fit_arguments()],
        }

    def part(self) -> Json:
        """Returns what a configuration has to say that says nothing else."""
        return {"profiles": [{"schedulerName": _DEFAULT_PROFILE, **self.profile()}]}

    def inputs(self) -> Json:
        """Returns what decides whether kube-scheduler serves with it."""
        return {"plugin": self.part(), "image": self.image}

    def edits(self, document: Json) -> list[Edit]:
        """Returns what is added to somebody else's configuration: the plugin in each profile, for pods of all
        of them take the same cards.

        Raises NeedsPersonError for one that has the plugin already, or is not what kube-scheduler reads.
        """
        profiles = _list(document, "profiles", "profiles")
        if not profiles:
            return [AddItem(path=("profiles",), value=self.part()["profiles"][0])]
        if not all(isinstance(profile, dict) for profile in profiles):
            raise NeedsPersonError("profiles in the scheduler's --config file is not a list of mappings")
        return [
            edit
            for number, profile in enumerate(profiles)
            for edit in self._of_profile(profile, ("profiles", number))
        ]

    def _of_profile(self, profile: Json, path: YamlPath) -> Iterator[Edit]:
        where = (*path, "plugins")
        if "plugins" in profile:
            yield from self._of_plugins(_mapping(profile["plugins"], _dotted(where)), where)
        else:
            yield AddEntry(path=where, value=self.profile()["plugins"])
        yield from self._of_arguments(profile, (*path, "pluginConfig"))

    def _of_plugins(self, plugins: Json, path: YamlPath) -> Iterator[Edit]:
        for point in (_MULTI_POINT, *FIRST, *OTHERS):
            where = (*path, point)
            lists = _mapping(plugins.get(point), _dotted(where))
            name = self._enabled(point)["name"]
            if name in _names(lists, "enabled", where):
                raise NeedsPersonError(
                    f"{_dotted(where)} in the scheduler's --config file has the plugin {name} already; "
                    "remove it there"
                )
            if point in OTHERS and _EVERYTHING["name"] not in _names(lists, "disabled", where):
                continue
            yield self._at_point(point, plugins, where)

    def _at_point(self, point: str, plugins: Json, path: YamlPath) -> Edit:
        enabled, value = (*path, "enabled"), self._enabled(point)
        if point not in plugins:
            return AddEntry(path=path, value={"enabled": [value]})
        if plugins[point] is None:
            return AddEntry(path=enabled, value=[value])
        return AddItem(path=enabled, value=value, index=None if point == _MULTI_POINT else 0)

    def _of_arguments(self, profile: Json, path: YamlPath) -> Iterator[Edit]:
        names = _names(profile, "pluginConfig", path[:-1])
        if PLUGIN in names:
            raise NeedsPersonError(
                f"{_dotted(path)} in the scheduler's --config file has arguments of the plugin {PLUGIN} "
                "already; remove them there"
            )
        yield AddItem(path=path, value=self._own_arguments())
        if _FIT in names:
            number = names.index(_FIT)
            yield from self._of_fit(profile["pluginConfig"][number], (*path, number))
        else:
            yield AddItem(path=path, value=self._fit_arguments())

    def _of_fit(self, theirs: Json, path: YamlPath) -> Iterator[Edit]:
        own, where = self._fit_arguments()["args"], (*path, "args")
        if "args" not in theirs:
            yield AddEntry(path=where, value=own)
        elif theirs["args"] is None:
            yield from (AddEntry(path=(*where, key), value=value) for key, value in own.items())
        else:
            ignored = (*where, "ignoredResources")
            present = _list(_mapping(theirs["args"], _dotted(where)), "ignoredResources", _dotted(ignored))
            missing = (name for name in own["ignoredResources"] if name not in present)
            yield from (AddItem(path=ignored, value=name) for name in missing)

    def _enabled(self, point: str) -> Json:
        scores = point in (_MULTI_POINT, "score")
        name = GATE if point == _GATES else PLUGIN
        return {"name": name, **({"weight": self.weight} if scores else {})}

    def _own_arguments(self) -> Json:
        return {"name": PLUGIN, "args": {"extenderLeaseNamespace": self.lease_namespace}}

    def _fit_arguments(self) -> Json:
        return {
            "name": _FIT,
            "args": {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "NodeResourcesFitArgs",
                "ignoredResources": self.decided_by_plugin,
            },
        }


def _names(owner: Json, key: str, path: YamlPath) -> list[str]:
    entries = _list(owner, key, _dotted((*path, key)))
    return [str(_mapping(entry, _dotted((*path, key))).get("name")) for entry in entries]


def _list(owner: Json, key: str, name: str) -> list[Any]:
    value = owner.get(key)
    if value is not None and not isinstance(value, list):
        raise NeedsPersonError(f"{name} in the scheduler's --config file is not a list")
    return value or []


def _mapping(value: Any, name: str) -> Json:
    if value is not None and not isinstance(value, dict):
        raise NeedsPersonError(f"{name} in the scheduler's --config file is not a mapping")
    return value or {}


def _dotted(path: YamlPath) -> str:
    return ".".join(map(str, path))
