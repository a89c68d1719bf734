"""The manifest of kube-scheduler's static pod: what it says, and the one surgical edit of it.

The edit only adds. A ``--config`` that is there stays: of a flag that is given twice the last one counts, so
ours stands behind it. The manifest itself tells what to remove, whatever was lost beside it.

Every edit is made twice: in the text by splicing, in the parsed pod by list operations. Unless both results
are equal the edit is refused.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from gpushare_core.text import yaml_edit
from gpushare_core.text.json_object import Json
from gpushare_core.text.yaml_edit import YamlPath
from gpushare_hostctl.decide.scheduler.scheduler_flags import SchedulerFlags
from gpushare_hostctl.errors import NeedsPersonError, utf8_text, yaml_needs_person

VOLUME_NAME = "gpushare-scheduler-config"
KEYS_VOLUME_NAME = "gpushare-scheduler-keys"
"""Names of the volumes we add; a volume of such a name is ours."""

_PROGRAM = "kube-scheduler"
_CONFIG = "config"


@dataclass(frozen=True)
class _Word:
    """Of the container's ``command`` or ``args``."""

    path: YamlPath
    text: str


@dataclass(frozen=True)
class SchedulerPod:
    """kube-scheduler's static pod: its text, and the text parsed."""

    text: str
    pod: Json
    container_path: YamlPath
    words: tuple[_Word, ...]
    """kube-scheduler's flags."""
    first_flag: YamlPath
    """Where a new flag goes: before every other, so that it cannot become another flag's value."""

    @property
    def container(self) -> Json:
        container: Json = self.pod["spec"]["containers"][self.container_path[-1]]
        return container

    @property
    def flags(self) -> SchedulerFlags:
        return SchedulerFlags(tuple(word.text for word in self.words))

    @property
    def config(self) -> str | None:
        """The value of ``--config``; None when it is absent or empty: kube-scheduler runs by its flags.

        Raises NeedsPersonError for a value that is not in the manifest.
        """
        return self.flags.value(_CONFIG) or None


@yaml_needs_person()
def parse(content: bytes) -> SchedulerPod:
    """Raises NeedsPersonError unless it is a static pod with one kube-scheduler in it."""
    text = utf8_text(content, name="the manifest")
    pod = yaml_edit.first_document(text)
    if not isinstance(pod, dict) or pod.get("kind") != "Pod" or not isinstance(pod.get("spec"), dict):
        raise NeedsPersonError("the manifest is not a Pod; it has to be kube-scheduler's static pod")
    index = _scheduler_index(pod["spec"])
    container_path: YamlPath = ("spec", "containers", index)
    words, first_flag = _flag_words(pod["spec"]["containers"][index], container_path)
    return SchedulerPod(text=text, pod=pod, container_path=container_path, words=words, first_flag=first_flag)


def raw_config(scheduler: SchedulerPod) -> str | None:
    """Returns the value of ``--config`` as it is written; None when there is no such flag."""
    flag = scheduler.flags.last(_CONFIG)
    return flag.value if flag else None


def has_our_edit(scheduler: SchedulerPod, *, folder: str) -> bool:
    """Returns whether the manifest has a ``--config`` below ``folder``, our volume or our mount."""
    return (
        bool(_our_words(scheduler, folder=folder))
        or bool(_our_indices(scheduler.pod["spec"], "volumes"))
        or bool(_our_indices(scheduler.container, "volumeMounts"))
    )


def mentions_us(content: bytes, *, folder: str) -> bool:
    """Returns whether a text, a manifest or not, has the name of a volume of ours or of our folder in it."""
    return any(name.encode() in content for name in (VOLUME_NAME, KEYS_VOLUME_NAME, folder))


def add(scheduler: SchedulerPod, *, config: str, keys: str | None = None) -> bytes:
    """Returns the manifest with a ``--config`` for our file, that file mounted, and nothing else changed.

    ``config`` is the file's path on the host and in the container; ``keys`` that of a folder with keys, which
    is mounted, too. Raises NeedsPersonError when that cannot be done without touching something else.
    """
    with yaml_needs_person("with gpushare's part the manifest"):
        text = _added(scheduler, config, keys)
        verify(scheduler, text, expected=_expected_addition(scheduler, config, keys))
    return text.encode()


def _added(scheduler: SchedulerPod, config: str, keys: str | None) -> str:
    *sequence, index = _place_of_ours(scheduler)
    text = yaml_edit.insert_item(scheduler.text, tuple(sequence), index=int(index), value=_flag(config))
    for volume in _volumes(config, keys):
        text = yaml_edit.insert_item(text, (*scheduler.container_path, "volumeMounts"), value=_mount(volume))
        text = yaml_edit.insert_item(text, ("spec", "volumes"), value=volume)
    return text


@yaml_needs_person()
def remove(scheduler: SchedulerPod, *, folder: str) -> bytes:
    """Returns the manifest without our part, everything else as it is.

    Raises NeedsPersonError when that cannot be done without touching something else.
    """
    text = scheduler.text
    for word in reversed(_our_words(scheduler, folder=folder)):
        *sequence, index = word.path
        text = yaml_edit.remove_item(text, tuple(sequence), index=int(index))
    text = _remove_ours(text, scheduler.container, path=(*scheduler.container_path, "volumeMounts"))
    text = _remove_ours(text, scheduler.pod["spec"], path=("spec", "volumes"))
    verify(scheduler, text, expected=_expected_removal(scheduler, folder=folder))
    return text.encode()


def verify(scheduler: SchedulerPod, text: str, *, expected: Json) -> None:
    """Raises NeedsPersonError unless ``text`` parses to ``expected``, further documents unchanged."""
    others = yaml_edit.documents(scheduler.text)[1:]
    if _canonical(_documents(text)) != _canonical([expected, *others]):
        raise NeedsPersonError(
            "the manifest is written in a way that cannot be edited without changing something else "
            "(aliases or merge keys, perhaps); write it out plainly, or use another scheduler backend"
        )


def host_path(scheduler: SchedulerPod, path: str) -> str:
    """Returns where a path in the scheduler's container is on the host.

    Raises NeedsPersonError for a path that no hostPath volume of the pod holds.
    """
    mount = _innermost_mount(scheduler.container, path)
    if mount is None:
        raise NeedsPersonError(
            f"--config={path} is in none of kube-scheduler's volumes; mount it from the host"
        )
    volumes = (volume for volume in _list(scheduler.pod["spec"], "volumes") if isinstance(volume, dict))
    host = next(
        (volume.get("hostPath") for volume in volumes if volume.get("name") == mount.get("name")), None
    )
    source = host.get("path") if isinstance(host, dict) else None
    if not isinstance(source, str) or mount.get("subPathExpr"):
        raise NeedsPersonError(f"--config={path} is not in a hostPath volume; mount it from the host")
    below_mount = PurePosixPath(path).relative_to(mount["mountPath"])
    return str(PurePosixPath(source) / str(mount.get("subPath") or "") / below_mount)


def _documents(text: str) -> list[Any] | None:
    try:
        return yaml_edit.documents(text)
    except yaml_edit.TooLongError:
        raise
    except yaml_edit.YamlEditError:
        return None


def _list(owner: Json, key: str) -> list[Any]:
    value = owner.get(key)
    return value if isinstance(value, list) else []


def _scheduler_index(spec: Json) -> int:
    containers = _list(spec, "containers")
    running = [index for index, container in enumerate(containers) if _runs_scheduler(container)]
    named = [index for index in running if _name(containers[index]) == _PROGRAM]
    schedulers = running if len(running) == 1 else named
    if len(schedulers) != 1:
        names = [_name(container) for container in containers]
        raise NeedsPersonError(
            f"{len(running)} of the manifest's containers {names} have {_PROGRAM} as a word of the command; "
            "exactly one is needed, called directly and not by a shell"
        )
    return schedulers[0]


def _name(container: Any) -> Any:
    return container.get("name") if isinstance(container, dict) else container


def _runs_scheduler(container: Any) -> bool:
    if not isinstance(container, dict):
        return False
    command, args = container.get("command"), _list(container, "args")
    if any(map(_is_program, [*_list(container, "command"), *args])):
        return True
    # No command: the image's entry point is the scheduler and args are its flags.
    return container.get("name") == _PROGRAM and not command and bool(args)


def _is_program(word: Any) -> bool:
    # A word with a blank in it is a shell's script.
    return isinstance(word, str) and " " not in word and PurePosixPath(word).name == _PROGRAM


def _flag_words(container: Json, path: YamlPath) -> tuple[tuple[_Word, ...], YamlPath]:
    words = [
        _Word(path=(*path, key, index), text=_string(word))
        for key in ("command", "args")
        for index, word in enumerate(_list(container, key))
    ]
    program = next((place for place, word in enumerate(words) if _is_program(word.text)), None)
    if program is None:
        return tuple(words), (*path, "args", 0)
    *sequence, index = words[program].path
    return tuple(words[program + 1 :]), (*sequence, int(index) + 1)


def _string(word: Any) -> str:
    if not isinstance(word, str):
        raise NeedsPersonError(
            f"kube-scheduler's command has the word {word!r}, which is not a string; quote it"
        )
    return word


def _is_below(path: str | None, folder: str) -> bool:
    return path is not None and PurePosixPath(path).is_relative_to(folder)


def _volumes(config: str, keys: str | None) -> list[Json]:
    volumes: list[Json] = [{"hostPath": {"path": config, "type": "File"}, "name": VOLUME_NAME}]
    if keys is not None:
        volumes.append({"hostPath": {"path": keys, "type": "Directory"}, "name": KEYS_VOLUME_NAME})
    return volumes


def _mount(volume: Json) -> Json:
    return {"mountPath": volume["hostPath"]["path"], "name": volume["name"], "readOnly": True}


def _flag(config: str) -> str:
    return f"--{_CONFIG}={config}"


def _place_of_ours(scheduler: SchedulerPod) -> YamlPath:
    """Returns where our flag goes: behind the ``--config`` that counts so far, else before all flags."""
    flag = scheduler.flags.last(_CONFIG)
    if flag is None:
        return scheduler.first_flag
    if flag.value_index is None:
        raise NeedsPersonError(
            "the flag --config of kube-scheduler has no value; give it one or take it away"
        )
    *sequence, index = scheduler.words[flag.value_index].path
    return (*sequence, int(index) + 1)


def _our_words(scheduler: SchedulerPod, *, folder: str) -> list[_Word]:
    """Returns the words of every ``--config`` below ``folder``, in order."""
    flags = [flag for flag in scheduler.flags.all(_CONFIG) if _is_below(flag.value, folder)]
    places = {place for flag in flags for place in (flag.index, flag.value_index)}
    return [word for place, word in enumerate(scheduler.words) if place in places]


def _our_indices(owner: Json, key: str) -> list[int]:
    """``key``: ``volumes`` or ``volumeMounts``."""
    return [
        index
        for index, entry in enumerate(_list(owner, key))
        if isinstance(entry, dict) and entry.get("name") in (VOLUME_NAME, KEYS_VOLUME_NAME)
    ]


def _remove_ours(text: str, owner: Json, *, path: YamlPath) -> str:
    for index in reversed(_our_indices(owner, str(path[-1]))):
        text = yaml_edit.remove_item(text, path, index=index)
    return text


def _edited_pod(scheduler: SchedulerPod, edit: Callable[[Json], None]) -> Json:
    # Through JSON: what YAML shares by an alias must not be shared in the expectation.
    pod: Json = json.loads(_canonical(scheduler.pod))
    edit(pod)
    return pod


def _at(pod: Json, path: YamlPath) -> Any:
    value: Any = pod
    for step in path:
        value = value[step]
    return value


def _expected_addition(scheduler: SchedulerPod, config: str, keys: str | None) -> Json:
    def edit(pod: Json) -> None:
        container = _at(pod, scheduler.container_path)
        *sequence, index = _place_of_ours(scheduler)
        _at(pod, tuple(sequence)).insert(index, _flag(config))
        volumes = _volumes(config, keys)
        mounts = [_mount(volume) for volume in volumes]
        container["volumeMounts"] = [*(container.get("volumeMounts") or []), *mounts]
        pod["spec"]["volumes"] = [*(pod["spec"].get("volumes") or []), *volumes]

    return _edited_pod(scheduler, edit)


def _expected_removal(scheduler: SchedulerPod, *, folder: str) -> Json:
    def edit(pod: Json) -> None:
        for word in reversed(_our_words(scheduler, folder=folder)):
            del _at(pod, word.path[:-1])[word.path[-1]]
        _expect_without(_at(pod, scheduler.container_path), "volumeMounts")
        _expect_without(pod["spec"], "volumes")

    return _edited_pod(scheduler, edit)


def _expect_without(owner: Json, key: str) -> None:
    for index in reversed(_our_indices(owner, key)):
        del owner[key][index]


def _canonical(value: Any) -> str:
    """Returns equal texts for equal documents. An empty list is no list, as in Kubernetes' API."""
    return json.dumps(_without_empty_lists(value), sort_keys=True, default=str)


def _without_empty_lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _without_empty_lists(item) for key, item in value.items() if item not in ([], None)}
    if isinstance(value, list):
        return [_without_empty_lists(item) for item in value]
    return value


def _innermost_mount(container: Json, path: str) -> Json | None:
    mounts = [
        mount
        for mount in _list(container, "volumeMounts")
        if isinstance(mount, dict)
        and isinstance(mount.get("mountPath"), str)
        and _is_below(path, mount["mountPath"])
    ]
    return max(mounts, key=lambda mount: len(PurePosixPath(mount["mountPath"]).parts), default=None)
