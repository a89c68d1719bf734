"""How the mirror pod of a kube-scheduler's manifest is read."""

from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

from gpushare_core.text.json_object import Json
from gpushare_operator.cluster.object_parts import read_time
from gpushare_operator.cluster.objects import SchedulerObject


def read_scheduler(body: Json, seen: datetime) -> SchedulerObject:
    spec = body.get("spec", {})
    containers = spec.get("containers") or ()
    # Other containers have flags of their own.
    own = next((each for each in containers if any(map(_is_scheduler, _words(each)))), [*containers, {}][0])
    return SchedulerObject(
        name=body["metadata"]["name"],
        node=spec.get("nodeName", ""),
        config=_last_config(_words(own)),
        image=own.get("image", ""),
        seen=seen,
        started=_last_start(body.get("status", {}).get("containerStatuses") or ()),
    )


def _words(container: Json) -> list[str]:
    return [*(container.get("command") or ()), *(container.get("args") or ())]


def _last_start(containers: Any) -> datetime | None:
    states = (container.get("state", {}).get("running") or {} for container in containers)
    starts = (read_time(state.get("startedAt")) for state in states)
    return max((start for start in starts if start), default=None)


def _is_scheduler(word: str) -> bool:
    return " " not in word and PurePosixPath(word).name == "kube-scheduler"


def _last_config(flags: list[str]) -> str:
    config = ""
    for flag, following in zip(flags, [*flags[1:], ""], strict=False):
        name, _, value = flag.partition("=")
        if name.lstrip("-") == "config":
            config = value or following
    return config
