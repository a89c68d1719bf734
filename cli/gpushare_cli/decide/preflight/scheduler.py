"""What is seen of the cluster's kube-scheduler, and what backend ``KubeScheduler`` would edit."""

import re
from collections.abc import Iterator, Sequence

from gpushare_cli.decide.preflight.answer import PreflightAnswer, Verdict
from gpushare_cli.decide.preflight.distributions import (
    BACKENDS_PAGE,
    MANIFEST_FOLDER,
    edit_obstacles,
    recommended_backend,
    takes_edits,
)
from gpushare_cli.decide.preflight.facts import PreflightFacts
from gpushare_cli.decide.preflight.node_groups import places
from gpushare_cli.decide.preflight.objects import KubeSchedulerPod
from gpushare_core.api.enums import Backend
from gpushare_core.kubernetes_minors import ENGINE_RANGE, engine_minor, minor_of

_TAG = re.compile(r":([^:/@]+)$")


def scheduler_answer(facts: PreflightFacts) -> PreflightAnswer:
    static = facts.static_schedulers
    if not static:
        return _none_editable(facts)
    found = "; ".join(_described(static))
    if not takes_edits(facts):
        return PreflightAnswer(verdict=Verdict.OK, found=f"{found}; nothing of it is edited")
    if obstacles := list(edit_obstacles(facts)):
        return PreflightAnswer(
            verdict=Verdict.NOTE,
            found=f"{found}; {'; '.join(obstacles)}",
            to_do="Backend KubeScheduler cannot edit that. Put it where kubeadm has it, or take backend"
            f" Dedicated or External: see {BACKENDS_PAGE}.",
            nodes=tuple(pod.node for pod in static),
        )
    return PreflightAnswer(verdict=Verdict.OK, found=f"{found}; {_edit(static, facts)}")


def _none_editable(facts: PreflightFacts) -> PreflightAnswer:
    if facts.schedulers:
        names = ", ".join(sorted(pod.metadata.name for pod in facts.schedulers))
        found = f"no static pod, but the pod {names}"
    else:
        found = "no pod of it is seen in kube-system"
    if recommended_backend(facts) is Backend.DEDICATED:
        return PreflightAnswer(
            verdict=Verdict.OK,
            found=f"{found}; backend Dedicated needs none{_engine_note(facts.kubernetes)}",
        )
    return PreflightAnswer(
        verdict=Verdict.NOTE,
        found=found,
        to_do="Take backend Dedicated, or External with a kube-scheduler that you start: see"
        f" {BACKENDS_PAGE}.",
    )


def _engine_note(kubernetes: str) -> str:
    """Returns which engine backend Dedicated has on a server of that version."""
    server = minor_of(kubernetes)
    if server is None:
        return ""
    if engine_minor(server):
        return ", and has engine Plugin here"
    return f", and has engine Extender here: Plugin is for Kubernetes {ENGINE_RANGE}"


def _described(pods: Sequence[KubeSchedulerPod]) -> Iterator[str]:
    versions: dict[str, list[str]] = {}
    for pod in pods:
        versions.setdefault(version_of_image(pod.image), []).append(pod.node)
    for version, nodes in versions.items():
        yield f"{version}, a static pod on {places(sorted(nodes))}".removeprefix(", ")


def version_of_image(image: str) -> str:
    """
    >>> version_of_image("registry.k8s.io/kube-scheduler:v1.36.3@sha256:ab"), version_of_image("a:5000/b")
    ('v1.36.3', '')
    """
    found = _TAG.search(image.partition("@")[0])
    return found[1] if found else ""


def _edit(pods: Sequence[KubeSchedulerPod], facts: PreflightFacts) -> str:
    connected = [pod.node for pod in pods if pod.is_connected]
    if len(connected) == len(pods):
        return "connected to gpushare"
    configs = sorted({pod.own_config for pod in pods} - {""})
    asked = all(pod.node in facts.kubelets.static_pods for pod in pods)
    where = f"{MANIFEST_FOLDER}/kube-scheduler.yaml" + ("" if asked else ", where it is taken to be")
    elsewhere = f"connected to gpushare on {places(sorted(connected))}; elsewhere " if connected else ""
    parts = [f"{elsewhere}backend KubeScheduler adds --config and a mount to {where}"]
    if configs:
        parts.append(
            f"its own configuration {', '.join(configs)} is kept, and the extender added; whether that names"
            " another extender only the host knows"
        )
    return "; ".join(parts)
