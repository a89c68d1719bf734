"""By what a distribution of Kubernetes is recognized, and which scheduler backend suits it.

What of it was run, and what is from the distributions' documentation: ``docs/scheduler-backends.md``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from gpushare_cli.decide.preflight.answer import PreflightAnswer, Verdict
from gpushare_cli.decide.preflight.facts import MUTATING, PreflightFacts
from gpushare_cli.decide.preflight.objects import PreflightNode
from gpushare_core.api.enums import Backend

KUBEADM_FLAG = "--kubeconfig=/etc/kubernetes/scheduler.conf"
"""Of kube-scheduler, as kubeadm writes its static pod."""
MANIFEST_FOLDER = "/etc/kubernetes/manifests"
HOST_FOLDER = "/etc/kubernetes/"
"""What hostctl mounts of a host."""
BACKENDS_PAGE = "docs/scheduler-backends.md"
POLICY = "config/samples/managed-control-plane.yaml"
"""A policy with backend Dedicated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """The signs are texts that a cluster of it shows; one of them is enough."""

    name: str
    backend: Backend
    scheduler: str
    """A clause: where its kube-scheduler is."""
    in_version: str = ""
    """Within the version of API server or kubelets."""
    provider: str = ""
    """At the beginning of a node's ``spec.providerID``."""
    label: str = ""
    """At the beginning of the name of a node's label."""
    os_image: str = ""
    """At the beginning of a node's ``osImage``."""
    setting: str = ""
    """What else has to be set; a sentence."""
    is_hosted: bool = False
    """Its kube-scheduler is no pod of the cluster. Where one is seen, the cluster is another distribution
    with versions like its: EKS Anywhere, Google Distributed Cloud."""


DISTRIBUTIONS: Sequence[Distribution] = (
    Distribution(
        name="k3s",
        backend=Backend.DEDICATED,
        scheduler="kube-scheduler is a part of the k3s process",
        in_version="+k3s",
        provider="k3s://",
    ),
    Distribution(
        name="RKE2",
        backend=Backend.DEDICATED,
        scheduler="kube-scheduler is a static pod that RKE2 rewrites at each start",
        in_version="+rke2r",
        provider="rke2://",
    ),
    Distribution(
        name="k0s",
        backend=Backend.DEDICATED,
        scheduler="kube-scheduler is a process of the k0s controller",
        in_version="+k0s",
        setting="Workers need --kubelet-root-dir=/var/lib/kubelet: the plugin looks for the kubelet there.",
    ),
    Distribution(
        name="Talos",
        backend=Backend.DEDICATED,
        scheduler="kube-scheduler is a static pod that is in no file",
        os_image="Talos ",
    ),
    Distribution(
        name="MicroK8s",
        backend=Backend.DEDICATED,
        scheduler="kube-scheduler is a part of the kubelite process",
        label="microk8s.io/cluster",
    ),
    Distribution(
        name="OpenShift",
        backend=Backend.DEDICATED,
        scheduler="an operator owns kube-scheduler, and takes other edits back",
        label="node.openshift.io/os_id",
        os_image="Red Hat Enterprise Linux CoreOS",
        setting="SecurityContextConstraints have to let the plugin mount folders of the host.",
    ),
    Distribution(
        name="EKS",
        backend=Backend.DEDICATED,
        scheduler="AWS runs kube-scheduler",
        is_hosted=True,
        in_version="-eks-",
        label="eks.amazonaws.com/",
    ),
    Distribution(
        name="GKE",
        backend=Backend.DEDICATED,
        scheduler="Google runs kube-scheduler",
        is_hosted=True,
        in_version="-gke.",
        label="cloud.google.com/gke-nodepool",
    ),
    Distribution(
        name="AKS",
        backend=Backend.DEDICATED,
        scheduler="Microsoft runs kube-scheduler",
        is_hosted=True,
        label="kubernetes.azure.com/cluster",
    ),
    Distribution(
        name="kind",
        backend=Backend.KUBE_SCHEDULER,
        scheduler="kubeadm has made kube-scheduler's static pod",
        provider="kind://",
    ),
    Distribution(
        name="minikube",
        backend=Backend.KUBE_SCHEDULER,
        scheduler="kubeadm has made kube-scheduler's static pod",
        label="minikube.k8s.io/",
    ),
)
"""Those that builds of others carry first: k3s runs on machines of every cloud."""
KUBEADM = Distribution(
    name="kubeadm",
    backend=Backend.KUBE_SCHEDULER,
    scheduler="kube-scheduler is a static pod",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecognizedDistribution:
    distribution: Distribution
    sign: str
    """By which it was recognized."""


def recognized(facts: PreflightFacts) -> RecognizedDistribution | None:
    for distribution in DISTRIBUTIONS:
        if distribution.is_hosted and facts.static_schedulers:
            continue
        if sign := next(_signs(distribution, facts), ""):
            return RecognizedDistribution(distribution=distribution, sign=sign)
    for pod in facts.schedulers:
        if pod.is_static and KUBEADM_FLAG in pod.flags:
            return RecognizedDistribution(distribution=KUBEADM, sign=f"flags of {pod.metadata.name}")
    return None


def recommended_backend(facts: PreflightFacts) -> Backend:
    """Returns what suits the distribution and the kube-scheduler that is seen."""
    is_there = recognized(facts) is not None or facts.static_schedulers
    is_editable = is_there and takes_edits(facts) and not any(edit_obstacles(facts))
    return Backend.KUBE_SCHEDULER if is_editable else Backend.DEDICATED


def takes_edits(facts: PreflightFacts) -> bool:
    """Returns whether an edit of kube-scheduler lasts there; of an unknown distribution it is taken to."""
    found = recognized(facts)
    return found is None or found.distribution.backend is Backend.KUBE_SCHEDULER


def edit_obstacles(facts: PreflightFacts) -> Iterator[str]:
    """Yields why backend KubeScheduler could not edit one of the static pods; clauses."""
    for pod in facts.static_schedulers:
        folder = facts.kubelets.static_pods.get(pod.node, MANIFEST_FOLDER)
        if not pod.is_from_file:
            yield f"the kubelet of {pod.node} does not read it from a file"
        elif folder.rstrip("/") != MANIFEST_FOLDER:
            yield f"the kubelet of {pod.node} reads static pods from {folder or 'no folder'}"
        config = pod.own_config
        if config and not config.startswith(HOST_FOLDER):
            yield f"its configuration {config} on {pod.node} does not lie below {HOST_FOLDER}"


def distribution_answer(facts: PreflightFacts) -> PreflightAnswer:
    found, backend = recognized(facts), recommended_backend(facts)
    if found is None:
        return PreflightAnswer(
            verdict=Verdict.NOTE,
            found="not recognized",
            to_do=f"Take backend {backend}, by what is seen of kube-scheduler; see {BACKENDS_PAGE}.",
            command=_command(facts),
        )
    distribution = found.distribution
    said = f"{distribution.name} ({found.sign}): {distribution.scheduler}"
    if backend is Backend.KUBE_SCHEDULER:
        return PreflightAnswer(verdict=Verdict.OK, found=f"{said}; backend {backend} suits")
    sentences = (
        f"Take backend {backend}, as in {POLICY}; see {BACKENDS_PAGE}#on-your-distribution.",
        distribution.setting,
    )
    return PreflightAnswer(
        verdict=Verdict.NOTE,
        found=said,
        to_do=" ".join(filter(None, sentences)),
        command=_command(facts),
    )


def _command(facts: PreflightFacts) -> str:
    if recommended_backend(facts) is not Backend.DEDICATED:
        return ""
    folder = "manifests/dedicated/" if facts.admission_version(MUTATING) else "manifests/dedicated/scheduler/"
    return f"kubectl apply -k {folder}   # besides manifests/"


def _signs(distribution: Distribution, facts: PreflightFacts) -> Iterator[str]:
    if distribution.in_version and distribution.in_version in facts.kubernetes:
        yield f"version {facts.kubernetes}"
    yield from chain.from_iterable(_node_signs(distribution, node) for node in facts.nodes)


def _node_signs(distribution: Distribution, node: PreflightNode) -> Iterator[str]:
    machine = node.machine
    if distribution.in_version and distribution.in_version in machine.kubelet_version:
        yield f"kubelet {machine.kubelet_version} of {node.name}"
    if distribution.provider and node.spec.provider_id.startswith(distribution.provider):
        yield f"providerID {node.spec.provider_id}"
    if distribution.label:
        yield from (
            f"label {name} of {node.name}" for name in node.labels if name.startswith(distribution.label)
        )
    if distribution.os_image and machine.os_image.startswith(distribution.os_image):
        yield f"{machine.os_image} on {node.name}"
