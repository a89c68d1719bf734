"""The manifest of kube-scheduler's static pod: what it says."""

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from gpushare_core.text import yaml_edit
from gpushare_core.text.json_object import Json
from gpushare_core.text.yaml_edit import YamlPath
from gpushare_hostctl.decide.scheduler.scheduler_flags import SchedulerFlags
from gpushare_hostctl.errors import NeedsPersonError, utf8_text, yaml_needs_person

PROGRAM = "kube-scheduler"
CONFIG = "config"


@dataclass(frozen=True)
class Word:
    """Of the container's ``command`` or ``args``."""

    path: YamlPath
    text: str


@dataclass(frozen=True)
class SchedulerPod:
    """kube-scheduler's static pod: its text, and the text parsed."""

    text: str
    pod: Json
    container_path: YamlPath
    words: tuple[Word, ...]
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
        return self.flags.value(CONFIG) or None


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
    flag = scheduler.flags.last(CONFIG)
    return flag.value if flag else None


def host_path(scheduler: SchedulerPod, path: str) -> str:
    """Returns where a path in the scheduler's container is on the host.

    Raises NeedsPersonError for a path that no hostPath volume of the pod holds.
    """
    mount = _innermost_mount(scheduler.container, path)
    if mount is None:
        raise NeedsPersonError(
            f"--config={path} is in none of kube-scheduler's volumes; mount it from the host"
        )
    volumes = (volume for volume in items(scheduler.pod["spec"], "volumes") if isinstance(volume, dict))
    host = next(
        (volume.get("hostPath") for volume in volumes if volume.get("name") == mount.get("name")), None
    )
    source = host.get("path") if isinstance(host, dict) else None
    if not isinstance(source, str) or mount.get("subPathExpr"):
        raise NeedsPersonError(f"--config={path} is not in a hostPath volume; mount it from the host")
    below_mount = PurePosixPath(path).relative_to(mount["mountPath"])
    return str(PurePosixPath(source) / str(mount.get("subPath") or "") / below_mount)


def items(owner: Json, key: str) -> list[Any]:
    """Returns a list of a mapping; an empty one where there is something else."""
    value = owner.get(key)
    return value if isinstance(value, list) else []


def _scheduler_index(spec: Json) -> int:
    containers = items(spec, "containers")
    running = [index for index, container in enumerate(containers) if _runs_scheduler(container)]
    named = [index for index in running if _name(containers[index]) == PROGRAM]
    schedulers = running if len(running) == 1 else named
    if len(schedulers) != 1:
        names = [_name(container) for container in containers]
        raise NeedsPersonError(
            f"{len(running)} of the manifest's containers {names} have {PROGRAM} as a word of the command; "
            "exactly one is needed, called directly and not by a shell"
        )
    return schedulers[0]


def _name(container: Any) -> Any:
    return container.get("name") if isinstance(container, dict) else container


def _runs_scheduler(container: Any) -> bool:
    if not isinstance(container, dict):
        return False
    command, args = container.get("command"), items(container, "args")
    if any(map(_is_program, [*items(container, "command"), *args])):
        return True
    # No command: the image's entry point is the scheduler and args are its flags.
    return container.get("name") == PROGRAM and not command and bool(args)


def _is_program(word: Any) -> bool:
    # A word with a blank in it is a shell's script.
    return isinstance(word, str) and " " not in word and PurePosixPath(word).name == PROGRAM


def _flag_words(container: Json, path: YamlPath) -> tuple[tuple[Word, ...], YamlPath]:
    words = [
        Word(path=(*path, key, index), text=_string(word))
        for key in ("command", "args")
        for index, word in enumerate(items(container, key))
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


def is_below(path: str | None, folder: str) -> bool:
    return path is not None and PurePosixPath(path).is_relative_to(folder)


def _innermost_mount(container: Json, path: str) -> Json | None:
    mounts = [
        mount
        for mount in items(container, "volumeMounts")
        if isinstance(mount, dict)
        and isinstance(mount.get("mountPath"), str)
        and is_below(path, mount["mountPath"])
    ]
    return max(mounts, key=lambda mount: len(PurePosixPath(mount["mountPath"]).parts), default=None)
