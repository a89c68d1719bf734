"""What nodes are: container runtime, system and processor, version of cgroups."""

import re

from gpushare_cli.decide.preflight.answer import PreflightAnswer, Verdict
from gpushare_cli.decide.preflight.facts import PreflightFacts
from gpushare_cli.decide.preflight.node_groups import grouped_nodes, groups_text, known_answer, places
from gpushare_core.api.conditions import UNKNOWN
from gpushare_core.text.whole_number import whole_number

CDI_SINCE = {"containerd": (1, 7), "cri-o": (1, 23)}
"""Container runtime -> first version that reads CDI specifications. Source: ``docs/inventory.md``."""
CDI_SWITCHED_OFF = ("containerd", (2, 0))
"""Before this version it does so only where its configuration says ``enable_cdi = true``."""
RUN, BELIEVED = "amd64", "arm64"
"""Processors on which gpushare is run by its tests, and on which it is only believed to run."""
CGROUPS = {1: "version 1", 2: "version 2"}
_RUNTIME = re.compile(r"([a-z0-9-]+)://v?([0-9]{1,6})\.([0-9]{1,6})")


def runtimes_answer(facts: PreflightFacts) -> PreflightAnswer:
    groups = grouped_nodes(facts.nodes, lambda node: node.machine.container_runtime_version)
    if not groups:
        return PreflightAnswer(verdict=Verdict.NOTE, found="there are no nodes")
    found = groups_text(groups)
    states = {runtime: _cdi(runtime) for runtime in groups}
    without = tuple(sorted(name for runtime, names in groups.items() if states[runtime] for name in names))
    if not without:
        return PreflightAnswer(verdict=Verdict.OK, found=f"{found}; they read CDI specifications")
    reasons = "; ".join(dict.fromkeys(filter(None, states.values())))
    return PreflightAnswer(
        verdict=Verdict.NOTE,
        found=f"{found}; {reasons}",
        to_do=f"See to {places(without)} before a policy says injection: CDI. The default, Environment, needs"
        " none.",
        nodes=without,
    )


def _cdi(runtime: str) -> str:
    """Returns why it may not read CDI specifications; empty where it does."""
    read = _RUNTIME.match(runtime)
    name = read[1] if read else ""
    since = CDI_SINCE.get(name)
    if read is None or since is None:
        return f"whether {name or runtime} reads CDI specifications is not known"
    version = (whole_number(read[2]), whole_number(read[3]))
    if version < since:
        return f"{name} reads CDI specifications from {since[0]}.{since[1]} on"
    off_name, on_since = CDI_SWITCHED_OFF
    if name == off_name and version < on_since:
        return (
            f"{name} before {on_since[0]}.{on_since[1]} reads CDI specifications only with enable_cdi = true"
        )
    return ""


def systems_answer(facts: PreflightFacts) -> PreflightAnswer:
    processors = grouped_nodes(
        facts.nodes, lambda node: f"{node.machine.operating_system}/{node.machine.architecture}".strip("/")
    )
    if not processors:
        return PreflightAnswer(verdict=Verdict.NOTE, found="there are no nodes")
    images = grouped_nodes(facts.nodes, lambda node: node.machine.os_image)
    kernels = grouped_nodes(facts.nodes, lambda node: node.machine.kernel_version)
    found = f"{groups_text(processors)}; {groups_text(images)}; kernel {groups_text(kernels)}"
    tried = {f"linux/{RUN}", UNKNOWN}
    other = tuple(sorted(n for kind, names in processors.items() if kind not in tried for n in names))
    if not other:
        return known_answer(found, processors.get(UNKNOWN, ()))
    if set(processors) <= {*tried, f"linux/{BELIEVED}"}:
        to_do = (
            f"Try gpushare on {places(other)} first: on linux/{BELIEVED} it is believed to run, not tested."
        )
    else:
        to_do = f"Leave {places(other)} out of policies: gpushare runs on linux/{RUN} and linux/{BELIEVED}."
    return PreflightAnswer(verdict=Verdict.NOTE, found=found, to_do=to_do, nodes=other)


def cgroups_answer(facts: PreflightFacts) -> PreflightAnswer:
    kubelets = facts.kubelets
    if not kubelets.cgroups:
        return PreflightAnswer(
            verdict=Verdict.UNKNOWN,
            found=kubelets.refusal or "no kubelet was asked",
            to_do="Look on a node, if policies are to say isolation: Driver. cgroup2fs is version 2.",
            command="stat -fc %T /sys/fs/cgroup",
        )
    named = [node for node in facts.nodes if node.name in kubelets.cgroups]
    groups = grouped_nodes(named, lambda node: _cgroup_text(kubelets.cgroups[node.name]))
    found = groups_text(groups, rest=len(facts.nodes) - len(named))
    old = tuple(sorted(name for name, version in kubelets.cgroups.items() if version != 2))
    if not old:
        return PreflightAnswer(verdict=Verdict.OK, found=found)
    return PreflightAnswer(
        verdict=Verdict.NOTE,
        found=found,
        to_do=f"Isolation of kind Driver needs version 2 on {places(old)}; all else works with version 1.",
        nodes=old,
    )


def _cgroup_text(version: int) -> str:
    return CGROUPS.get(version, "no cgroups")
