"""GPU sharing in the configuration of Volcano's scheduler: switched on, and our part taken out again.

Source: ``docs/user-guide/how_to_use_gpu_sharing.md`` and ``pkg/scheduler/plugins`` of Volcano. Up to 1.8.2
the plugin ``predicates`` has the switch, later versions have a plugin of its own, ``deviceshare``. Neither
version minds the other's switch: an unknown argument is not read, and an unknown plugin is only logged. So
both are set, and an upgrade of Volcano changes nothing.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from gpushare_core.text import yaml_edit
from gpushare_core.text.json_object import Json
from gpushare_core.text.yaml_edit import YamlEditError, YamlPath

DEVICESHARE = "deviceshare"
PREDICATES = "predicates"
SWITCHES = {DEVICESHARE: "deviceshare.GPUSharingEnable", PREDICATES: "predicate.GPUSharingEnable"}
"""Plugin -> its argument that switches GPU sharing on."""
CONFLICTING_ARGUMENTS = frozenset(
    f"{prefix}.{name}"
    for prefix in ("deviceshare", "predicate")
    for name in ("VGPUEnable", "GPUNumberEnable")
)
"""Arguments with which Volcano's scheduler does not start while GPU sharing is on."""
ARGUMENTS = "arguments"


class VolcanoConfigError(Exception):
    """The configuration cannot be edited; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Addition:
    """One thing that was added to a configuration."""

    plugin: str
    whole: str
    """What was added as a whole: the ``plugin``, its ``arguments``, or only the ``switch``."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A configuration with GPU sharing switched on, and what was added for that."""

    text: str
    additions: tuple[Addition, ...] = ()


@dataclass(frozen=True, slots=True)
class _VolcanoPlugin:
    path: YamlPath
    body: Json

    @property
    def name(self) -> str:
        return str(self.body.get("name"))

    @property
    def arguments(self) -> Json:
        return self.body.get(ARGUMENTS) or {}


def enable(text: str) -> Edit:
    """Returns the configuration with GPU sharing switched on; all other bytes stay. If people have switched
    it on already nothing is added. Raises VolcanoConfigError: it is switched off on purpose, clashes with
    something else, or cannot be edited."""
    try:
        _check(_plugins(yaml_edit.first_document(text)))
        return _enable(text)
    except YamlEditError as error:
        raise VolcanoConfigError(f"{error}; correct it, or write it out plainly") from error


def disable(text: str, additions: Sequence[Addition]) -> str:
    """Returns the configuration without ``additions``, as far as they are still there. Raises
    VolcanoConfigError: it cannot be edited."""
    try:
        for addition in reversed(additions):
            text = _without(text, addition)
    except YamlEditError as error:
        raise VolcanoConfigError(f"{error}; correct it, or remove gpushare's part by hand") from error
    return text


def _enable(text: str) -> Edit:
    additions: list[Addition] = []
    plugins = _plugins(yaml_edit.first_document(text))
    if not any(plugin.name == DEVICESHARE for plugin in plugins):
        text = _insert_plugin(text, plugins)
        additions.append(Addition(DEVICESHARE, "plugin"))
    elif not _is_on(plugins, DEVICESHARE):
        text, addition = _switch_on(text, DEVICESHARE)
        additions.append(addition)
    has_predicates = any(plugin.name == PREDICATES for plugin in plugins)
    if additions and has_predicates and not _is_on(plugins, PREDICATES):
        text, addition = _switch_on(text, PREDICATES)
        additions.append(addition)
    return Edit(text, tuple(additions))


def _plugins(document: Any) -> list[_VolcanoPlugin]:
    tiers = document.get("tiers") if isinstance(document, dict) else None
    if not isinstance(tiers, list) or not tiers:
        raise VolcanoConfigError(
            "it has no list `tiers` of plugins, so Volcano would not read it; correct it"
        )
    found: list[_VolcanoPlugin] = []
    for number, tier in enumerate(tiers):
        plugins = tier.get("plugins") if isinstance(tier, dict) else None
        for index, body in enumerate(plugins if isinstance(plugins, list) else ()):
            arguments = body.get(ARGUMENTS) if isinstance(body, dict) else None
            if not isinstance(body, dict) or not isinstance(arguments, dict | None):
                raise VolcanoConfigError(f"tiers[{number}].plugins[{index}] is no plugin; correct it")
            found.append(_VolcanoPlugin(("tiers", number, "plugins", index), body))
    return found


def _check(plugins: Sequence[_VolcanoPlugin]) -> None:
    for plugin in plugins:
        for key, value in plugin.arguments.items():
            if key in CONFLICTING_ARGUMENTS and value is not False:
                raise VolcanoConfigError(
                    f"it has {key}: {_yaml(value)}, and Volcano's scheduler does not start with both that"
                    " and GPU sharing; remove it, or use another scheduler backend"
                )
            if key in SWITCHES.values() and value is not True:
                raise VolcanoConfigError(
                    f"somebody has set {key}: {_yaml(value)}; write true, or remove the line"
                )


def _yaml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _is_on(plugins: Sequence[_VolcanoPlugin], name: str) -> bool:
    return any(SWITCHES[name] in plugin.arguments for plugin in plugins if plugin.name == name)


def _insert_plugin(text: str, plugins: Sequence[_VolcanoPlugin]) -> str:
    """Inserts it before the plugin with the former switch, as in Volcano's documentation, else at the end."""
    value = {"name": DEVICESHARE, ARGUMENTS: {SWITCHES[DEVICESHARE]: True}}
    after = next((plugin for plugin in plugins if plugin.name == PREDICATES), None)
    if after is None and not plugins:
        raise VolcanoConfigError("its tiers have no plugins; correct it")
    path = after.path if after else plugins[-1].path
    index = int(path[-1]) + (0 if after else 1)
    changed = yaml_edit.insert_item(text, path[:-1], value=value, index=index)
    expected = deepcopy(yaml_edit.first_document(text))
    expected["tiers"][path[1]]["plugins"].insert(index, value)
    _verify(changed, expected)
    return changed


def _switch_on(text: str, name: str) -> tuple[str, Addition]:
    plugin = next(plugin for plugin in _plugins(yaml_edit.first_document(text)) if plugin.name == name)
    switch = SWITCHES[name]
    if ARGUMENTS in plugin.body:
        changed = yaml_edit.insert_entry(text, (*plugin.path, ARGUMENTS, switch), value=True)
        addition = Addition(name, "switch")
    else:
        changed = yaml_edit.insert_entry(text, (*plugin.path, ARGUMENTS), value={switch: True})
        addition = Addition(name, "arguments")
    expected = deepcopy(yaml_edit.first_document(text))
    body = expected["tiers"][plugin.path[1]]["plugins"][plugin.path[3]]
    body[ARGUMENTS] = {**(body.get(ARGUMENTS) or {}), switch: True}
    _verify(changed, expected)
    return changed, addition


def _without(text: str, addition: Addition) -> str:
    name, switch = addition.plugin, SWITCHES[addition.plugin]
    plugins = _plugins(yaml_edit.first_document(text))
    plugin = next((found for found in plugins if found.name == name and switch in found.arguments), None)
    if plugin is None:
        return text
    is_alone = plugin.arguments == {switch: True}
    if addition.whole == "plugin" and is_alone and set(plugin.body) == {"name", ARGUMENTS}:
        return yaml_edit.remove_item(text, plugin.path[:-1], index=int(plugin.path[-1]))
    if is_alone and addition.whole != "switch":
        return yaml_edit.remove_entry(text, (*plugin.path, ARGUMENTS))
    return yaml_edit.remove_entry(text, (*plugin.path, ARGUMENTS, switch))


def _verify(text: str, expected: Any) -> None:
    if yaml_edit.first_document(text) != expected:
        raise YamlEditError("it is written in a way that cannot be added to (aliases or merge keys, perhaps)")
