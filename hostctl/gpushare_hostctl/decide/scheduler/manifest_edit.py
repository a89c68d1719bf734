"""The one surgical edit of the manifest of kube-scheduler's static pod.

What the edit adds tells that it is ours by its name, and what it replaces stands beside it. So the manifest
itself tells what to take back, whatever was lost beside it.

- A ``--config`` that is there stays: of a flag that is given twice the last one counts, so ours comes last.
- Another image has the one of before in a variable. Its own user would not be root, who alone may read
  kube-scheduler's kubeconfig: without any user in the manifest it is told to run as root.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from gpushare_core.text import yaml_edit
from gpushare_core.text.json_object import Json
from gpushare_core.text.yaml_edit import YamlPath
from gpushare_hostctl.decide.scheduler.edits import (
    AddEntry,
    AddItem,
    Edit,
    RemoveEntry,
    RemoveItem,
    Replace,
    edited_document,
    edited_text,
)
from gpushare_hostctl.decide.scheduler.manifest import CONFIG, PROGRAM, SchedulerPod, Word, is_below, items
from gpushare_hostctl.errors import NeedsPersonError, yaml_needs_person

VOLUME_NAME = "gpushare-scheduler-config"
KEYS_VOLUME_NAME = "gpushare-scheduler-keys"
IMAGE, IMAGE_BEFORE, ROOT = "GPUSHARE_IMAGE", "GPUSHARE_IMAGE_BEFORE", "GPUSHARE_RUNS_AS_ROOT"
"""Variables: our image, the one that it replaces, and that ``runAsUser`` is ours."""

_OURS = {
    "volumes": {VOLUME_NAME, KEYS_VOLUME_NAME},
    "volumeMounts": {VOLUME_NAME, KEYS_VOLUME_NAME},
    "env": {IMAGE, IMAGE_BEFORE, ROOT},
}
"""Names of what we add to lists."""
_PROGRAMS = (PROGRAM, f"/usr/local/bin/{PROGRAM}")
"""How our image's program may be called."""


def has_our_edit(scheduler: SchedulerPod, *, folder: str) -> bool:
    """Returns whether the manifest has a ``--config`` below ``folder``, or something with a name of ours."""
    container, spec = scheduler.container, scheduler.pod["spec"]
    owners = {"volumes": spec, "volumeMounts": container, "env": container}
    has_ours = any(_our_indices(owner, key) for key, owner in owners.items())
    return has_ours or bool(_our_words(scheduler, folder=folder))


def mentions_us(content: bytes, *, folder: str) -> bool:
    """Returns whether a text, a manifest or not, has a name of ours or of our folder in it."""
    return any(name.encode() in content for name in (VOLUME_NAME, KEYS_VOLUME_NAME, IMAGE, ROOT, folder))


def add(scheduler: SchedulerPod, *, config: str, keys: str | None = None, image: str | None = None) -> bytes:
    """Returns the manifest with a ``--config`` for our file, that file mounted, and nothing else changed.

    ``config`` is the file's path on the host and in the container; ``keys`` that of a folder with keys, which
    is mounted, too; ``image`` takes the place of kube-scheduler's. Raises NeedsPersonError when that cannot
    be done without touching something else, or kube-scheduler would not start by it.
    """
    edits = [*_added(scheduler, config, keys), *(_swapped(scheduler, image) if image else ())]
    with yaml_needs_person("with gpushare's part the manifest"):
        return _edited(scheduler, edits)


@yaml_needs_person()
def remove(scheduler: SchedulerPod, *, folder: str) -> bytes:
    """Returns the manifest without our part, everything else as it is.

    An image that others have put in place of ours stays. Raises NeedsPersonError when that cannot be done
    without touching something else.
    """
    return _edited(scheduler, [*_swapped_back(scheduler), *_removed(scheduler, folder)])


def verify(scheduler: SchedulerPod, text: str, *, expected: Json) -> None:
    """Raises NeedsPersonError unless ``text`` parses to ``expected``, further documents unchanged."""
    others = yaml_edit.documents(scheduler.text)[1:]
    if _canonical(_documents(text)) != _canonical([expected, *others]):
        raise NeedsPersonError(
            "the manifest is written in a way that cannot be edited without changing something else "
            "(aliases or merge keys, perhaps); write it out plainly, or use another scheduler backend"
        )


def _edited(scheduler: SchedulerPod, edits: list[Edit]) -> bytes:
    text = edited_text(scheduler.text, edits)
    verify(scheduler, text, expected=edited_document(scheduler.pod, edits))
    return text.encode()


def _added(scheduler: SchedulerPod, config: str, keys: str | None) -> Iterator[Edit]:
    *sequence, index = _place_of_ours(scheduler)
    yield AddItem(path=tuple(sequence), index=int(index), value=_flag(config))
    for volume in _volumes(config, keys):
        yield AddItem(path=(*scheduler.container_path, "volumeMounts"), value=_mount(volume))
        yield AddItem(path=("spec", "volumes"), value=volume)


def _removed(scheduler: SchedulerPod, folder: str) -> Iterator[Edit]:
    for word in reversed(_our_words(scheduler, folder=folder)):
        *sequence, index = word.path
        yield RemoveItem(path=tuple(sequence), index=int(index))
    container, path = scheduler.container, scheduler.container_path
    yield from _without((*path, "volumeMounts"), _our_indices(container, "volumeMounts"))
    ours = _our_indices(container, "env")
    if ours and len(ours) == len(container["env"]):
        # Few pods have an empty list of variables, and in JSON it would stay where there was none.
        yield RemoveEntry(path=(*path, "env"))
    else:
        yield from _without((*path, "env"), ours)
    yield from _without(("spec", "volumes"), _our_indices(scheduler.pod["spec"], "volumes"))


def _without(path: YamlPath, indices: Iterable[int]) -> Iterator[Edit]:
    yield from (RemoveItem(path=path, index=index) for index in sorted(indices, reverse=True))


def _swapped(scheduler: SchedulerPod, image: str) -> Iterator[Edit]:
    container, path = scheduler.container, scheduler.container_path
    before = container.get("image")
    _check_image(container, before)
    yield Replace(path=(*path, "image"), value=image)
    marks = {IMAGE: image, IMAGE_BEFORE: before}
    if _names_no_user(scheduler):
        marks[ROOT] = "true"
        yield from _as_root(container, path)
    for name, value in marks.items():
        yield AddItem(path=(*path, "env"), value={"name": name, "value": value})


def _as_root(container: Json, path: YamlPath) -> Iterator[Edit]:
    where = (*path, "securityContext")
    if "securityContext" in container:
        yield AddEntry(path=(*where, "runAsUser"), value=0)
    else:
        yield AddEntry(path=where, value={"runAsUser": 0})


def _check_image(container: Json, before: Any) -> None:
    if not isinstance(before, str) or not before:
        raise NeedsPersonError("kube-scheduler's container has no image that could be replaced; give it one")
    if container.get("imagePullPolicy") == "Always":
        raise NeedsPersonError(
            "kube-scheduler has imagePullPolicy: Always, so it would not start while the registry of the "
            "image is away; write IfNotPresent, as kubeadm does"
        )
    first = next(iter(items(container, "command")), None)
    if first not in _PROGRAMS:
        raise NeedsPersonError(
            f"the command of kube-scheduler has to begin with {PROGRAM}, because the image with the plugin "
            f"has no other program; it begins with {first!r}"
        )


def _names_no_user(scheduler: SchedulerPod) -> bool:
    """Returns whether the image's user counts, and may be root."""
    contexts = (owner.get("securityContext") for owner in (scheduler.container, scheduler.pod["spec"]))
    known = [context for context in contexts if isinstance(context, dict)]
    return all(context.get("runAsUser") is None and not context.get("runAsNonRoot") for context in known)


def _swapped_back(scheduler: SchedulerPod) -> Iterator[Edit]:
    container, path, marks = scheduler.container, scheduler.container_path, _marks(scheduler)
    before = marks.get(IMAGE_BEFORE)
    if isinstance(before, str) and container.get("image") == marks.get(IMAGE):
        yield Replace(path=(*path, "image"), value=before)
    context = container.get("securityContext")
    if ROOT in marks and isinstance(context, dict) and context.get("runAsUser") == 0:
        where = (*path, "securityContext")
        yield RemoveEntry(path=where if len(context) == 1 else (*where, "runAsUser"))


def _marks(scheduler: SchedulerPod) -> Json:
    """Returns our variables."""
    variables = (scheduler.container["env"][index] for index in _our_indices(scheduler.container, "env"))
    return {variable["name"]: variable.get("value") for variable in variables}


def _documents(text: str) -> list[Any] | None:
    try:
        return yaml_edit.documents(text)
    except yaml_edit.TooLongError:
        raise
    except yaml_edit.YamlEditError:
        return None


def _volumes(config: str, keys: str | None) -> list[Json]:
    volumes: list[Json] = [{"hostPath": {"path": config, "type": "File"}, "name": VOLUME_NAME}]
    if keys is not None:
        volumes.append({"hostPath": {"path": keys, "type": "Directory"}, "name": KEYS_VOLUME_NAME})
    return volumes


def _mount(volume: Json) -> Json:
    return {"mountPath": volume["hostPath"]["path"], "name": volume["name"], "readOnly": True}


def _flag(config: str) -> str:
    return f"--{CONFIG}={config}"


def _place_of_ours(scheduler: SchedulerPod) -> YamlPath:
    """Returns where our flag goes: behind the ``--config`` that counts so far, else before all flags."""
    flag = scheduler.flags.last(CONFIG)
    if flag is None:
        return scheduler.first_flag
    if flag.value_index is None:
        raise NeedsPersonError("the flag --config of kube-scheduler has no value; give it one or remove it")
    *sequence, index = scheduler.words[flag.value_index].path
    return (*sequence, int(index) + 1)


def _our_words(scheduler: SchedulerPod, *, folder: str) -> list[Word]:
    """Returns the words of every ``--config`` below ``folder``, in order."""
    flags = [flag for flag in scheduler.flags.all(CONFIG) if is_below(flag.value, folder)]
    places = {place for flag in flags for place in (flag.index, flag.value_index)}
    return [word for place, word in enumerate(scheduler.words) if place in places]


def _our_indices(owner: Json, key: str) -> list[int]:
    return [
        index
        for index, entry in enumerate(items(owner, key))
        if isinstance(entry, dict) and entry.get("name") in _OURS[key]
    ]


def _canonical(value: Any) -> str:
    """Returns equal texts for equal documents. An empty list is no list, as in Kubernetes' API."""
    return json.dumps(_without_empty_lists(value), sort_keys=True, default=str)


def _without_empty_lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _without_empty_lists(item) for key, item in value.items() if item not in ([], None)}
    if isinstance(value, list):
        return [_without_empty_lists(item) for item in value]
    return value
