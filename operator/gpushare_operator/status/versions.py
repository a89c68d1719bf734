"""Which versions of our programs run for a policy; during a rollout there are several."""

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from gpushare_core.api import bounds
from gpushare_core.api.policy_status import ProgramVersions
from gpushare_core.process.version import VERSION
from gpushare_core.text.printable import printable
from gpushare_operator.cluster.labels import EXTENDER, SCHEDULER
from gpushare_operator.cluster.snapshot import ClusterSnapshot

MAX_VERSIONS = 8
"""Versions of one program that are named."""
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class PluginVersion:
    """Key of the number of nodes whose plugin is of this version."""

    version: str


def program_versions(snapshot: ClusterSnapshot, sums: Mapping[Hashable, int]) -> ProgramVersions:
    """``sums`` are those of the policy's nodes."""
    plugins = {key.version: number for key, number in sums.items() if isinstance(key, PluginVersion)}
    pods = [pod for pod in snapshot.pods.values() if pod.component in (EXTENDER, SCHEDULER)]
    extenders = Counter(pod.version for pod in pods if pod.runs_extender)
    schedulers = Counter(pod.version for pod in pods if not pod.runs_extender)
    runs = sorted(snapshot.jobs.values(), key=lambda job: job.sequence)
    last_runs = {job.node: job for job in runs}
    return ProgramVersions(
        operator=VERSION,
        plugin=_text(plugins),
        extender=_text(extenders),
        scheduler=_text(schedulers),
        hostctl=_text(Counter(job.version for job in last_runs.values())),
    )


def _text(numbers: Mapping[str, int]) -> str:
    """Returns ``0.1.0``; several with their numbers, as in ``0.2.0 (5), 0.1.0 (3)``."""
    ordered = sorted(numbers.items(), key=lambda item: (-item[1], item[0]))
    if len(ordered) == 1:
        return _word(ordered[0][0])
    shown = [f"{_word(version)} ({number})" for version, number in ordered[:MAX_VERSIONS]]
    return ", ".join([*shown, *(["..."] if len(ordered) > MAX_VERSIONS else [])])


def _word(version: str) -> str:
    return printable(version, max_bytes=bounds.WORD) or UNKNOWN
