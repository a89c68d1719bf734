"""For people who connect kube-scheduler themselves: its configuration, and where to put what."""

from dataclasses import dataclass, replace
from pathlib import PurePosixPath

import yaml

from gpushare_core.kubernetes_minors import SCHEDULER_CONFIGURATION, minor_of
from gpushare_core.text.json_object import Json
from gpushare_hostctl.decide.scheduler import scheduler_config
from gpushare_hostctl.decide.scheduler.extender_entry import ClientTls, ExtenderEntry
from gpushare_hostctl.decide.scheduler.key_pairs import CLIENT_FILE, TRUSTED_FILE
from gpushare_hostctl.decide.scheduler.scheduler_flags import SchedulerFlags
from gpushare_hostctl.errors import NeedsPersonError

OVERRULED = (
    "kubeconfig",
    "kube-api-content-type",
    "kube-api-qps",
    "kube-api-burst",
    "profiling",
    "contention-profiling",
)
"""Flags that no longer count beside ``--config``: the configuration has their values."""

KEYS = """Make the keys of both sides on kube-scheduler's host, as root, and again every eight months:
     gpushare-hostctl keys --root /
   {key} is kube-scheduler's, and readable for root only:
   where kube-scheduler runs as another user, let that one read it, too."""
CARRIED = """
   With it kube-scheduler ignores these, and the file has their values: {flags}."""
RESTART = """Restart kube-scheduler, now and whenever one of these files has changed. It needs no further
   rights: the extender binds pods in its own name."""
CHECK = """Create a pod that asks for cards: the policy's condition SchedulerConfigured says Called once
   kube-scheduler has asked the extender."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is to be rendered. Paths are those on kube-scheduler's host."""

    extender: ExtenderEntry
    folder: str
    """Where ``gpushare-hostctl keys`` puts keys."""
    target: str
    """Where the configuration is to be saved."""
    config: bytes | None = None
    """The configuration that kube-scheduler has now; None where it runs by its flags."""
    flags: SchedulerFlags
    """Those that kube-scheduler has now."""
    version: str = ""
    """Of kube-scheduler, such as ``1.36``; empty where nobody said."""


@dataclass(frozen=True)
class Rendering:
    configuration: bytes
    instructions: str


def render(question: Question) -> Rendering:
    """Raises NeedsPersonError for a kube-scheduler that is too old, flags that cannot be carried over, and a
    configuration that cannot be merged."""
    _check(question)
    entry = _with_keys(question)
    if question.config is None:
        configuration = scheduler_config.from_flags(question.flags, entry, header="")
    else:
        configuration = scheduler_config.merge(question.config, entry)
    return Rendering(configuration, _instructions(question, entry))


def _check(question: Question) -> None:
    minor = minor_of(question.version)
    if question.version and not minor:
        raise NeedsPersonError(f"{question.version!r} is no version of Kubernetes; write it as 1.36")
    if minor and minor < SCHEDULER_CONFIGURATION:
        raise NeedsPersonError(
            f"kube-scheduler {question.version} does not read kubescheduler.config.k8s.io/v1;"
            f" it has to be {SCHEDULER_CONFIGURATION} or newer"
        )
    present = question.flags.value("config")
    if question.config is None and present:
        raise NeedsPersonError(f"kube-scheduler has --config={present}: give a copy of that file as --config")


def _with_keys(question: Question) -> ExtenderEntry:
    if not question.extender.needs_keys:
        return question.extender
    folder = PurePosixPath(question.folder)
    tls = ClientTls(client=str(folder / CLIENT_FILE), trusted=str(folder / TRUSTED_FILE))
    return replace(question.extender, tls=tls)


def _instructions(question: Question, entry: ExtenderEntry) -> str:
    steps = [*_about_keys(entry), *_about_the_file(question), *_about_mounts(question, entry), RESTART, CHECK]
    return "\n".join(f"{number}. {step}" for number, step in enumerate(steps, start=1)) + "\n"


def _about_keys(entry: ExtenderEntry) -> list[str]:
    if entry.tls is None:
        return ["No keys are needed: the extender is called without TLS, so keep others from its port."]
    return [KEYS.format(key=entry.tls.client)]


def _about_the_file(question: Question) -> list[str]:
    saved = f"Save the configuration, the standard output of this command, as {question.target}."
    if question.config is not None:
        return [f"{saved}\n   It is yours with the extender added to it."]
    given = [f"--{name}" for name in OVERRULED if question.flags.last(name)]
    flag = f"Give kube-scheduler the flag --config={question.target}, and leave its other flags."
    return [saved, flag + (CARRIED.format(flags=", ".join(given)) if given else "")]


def _about_mounts(question: Question, entry: ExtenderEntry) -> list[str]:
    paths = {"config": question.target}
    if entry.tls:
        paths |= {"key": entry.tls.client, "authorities": entry.tls.trusted}
    volumes: list[Json] = [
        {"name": f"gpushare-{name}", "hostPath": {"path": path, "type": "File"}}
        for name, path in paths.items()
    ]
    mounts: list[Json] = [
        {"name": f"gpushare-{name}", "mountPath": path, "readOnly": True} for name, path in paths.items()
    ]
    written = yaml.safe_dump({"volumeMounts": mounts, "volumes": volumes}, sort_keys=False)
    lines = (f"     {line}" for line in written.splitlines())
    return ["\n".join(("Where kube-scheduler runs in a pod, mount into it:", *lines))]
