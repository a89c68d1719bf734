"""What is seen of the cluster's kube-scheduler, and what backend ``KubeScheduler`` would edit."""

import re
from collections.abc import Iterator, Sequence

from gpushare_cli.decide.preflight.answer import PreflightAnswer, Verdict
from gpushare_cli.decide.preflight.distributions import BACKENDS_PAGE, recommended_backend
from gpushare_cli.decide.preflight.facts import PreflightFacts
from gpushare_cli.decide.preflight.node_groups import places
from gpushare_cli.decide.preflight.objects import KubeSchedulerPod
from gpushare_core.api.enums import Backend

MANIFEST_FOLDER = "/etc/kubernetes/manifests"
HOST_FOLDER = "/etc/kubernetes/"
"""What hostctl mounts of a host."""
OUR_FOLDER = "/etc/kubernetes/gpushare/"
CONFIG_FLAG = "--config="
_TAG = re.compile(r":([^:/@]+)$")


def scheduler_answer(facts: PreflightFacts) -> PreflightAnswer:
    static = [pod for pod in facts.schedulers if pod.is_static]
    if not static:
        return _none_editable(facts)
    found = "; ".join(_described(static))
    if recommended_backend(facts) is not Backend.KUBE_SCHEDULER:
        return PreflightAnswer(verdict=Verdict.OK, found=f"{found}; nothing of it is edited")
    obstacles = list(_obstacles(static, facts))
    if obstacles:
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
        return PreflightAnswer(verdict=Verdict.OK, found=f"{found}; backend Dedicated needs none")
    return PreflightAnswer(
        verdict=Verdict.NOTE,
        found=found,
        to_do="Take backend Dedicated, or External with a kube-scheduler that you start: see"
        f" {BACKENDS_PAGE}.",
    )


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


def own_config(pod: KubeSchedulerPod) -> str:
    """Returns the configuration that people have given it; empty: none."""
    given = [flag.removeprefix(CONFIG_FLAG) for flag in pod.flags if flag.startswith(CONFIG_FLAG)]
    return next((path for path in reversed(given) if not path.startswith(OUR_FOLDER)), "")


def _is_connected(pod: KubeSchedulerPod) -> bool:
    return any(flag.startswith(CONFIG_FLAG + OUR_FOLDER) for flag in pod.flags)


def _obstacles(pods: Sequence[KubeSchedulerPod], facts: PreflightFacts) -> Iterator[str]:
    for pod in pods:
        folder = facts.kubelets.static_pods.get(pod.node, MANIFEST_FOLDER)
        if not pod.is_from_file:
            yield f"the kubelet of {pod.node} does not read it from a file"
        elif folder.rstrip("/") != MANIFEST_FOLDER:
            yield f"the kubelet of {pod.node} reads static pods from {folder or 'no folder'}"
        config = own_config(pod)
        if config and not config.startswith(HOST_FOLDER):
            yield f"its configuration {config} on {pod.node} does not lie below {HOST_FOLDER}"


def _edit(pods: Sequence[KubeSchedulerPod], facts: PreflightFacts) -> str:
    connected = [pod.node for pod in pods if _is_connected(pod)]
    if len(connected) == len(pods):
        return "connected to gpushare"
    configs = sorted({own_config(pod) for pod in pods} - {""})
    asked = all(pod.node in facts.kubelets.static_pods for pod in pods)
    where = f"{MANIFEST_FOLDER}/kube-scheduler.yaml" + ("" if asked else ", where it is taken to be")
    parts = [f"backend KubeScheduler adds --config and a mount to {where}"]
    if configs:
        parts.append(
            f"its own configuration {', '.join(configs)} is kept, and the extender added; whether that names"
            " another extender only the host knows"
        )
    return "; ".join(parts)
