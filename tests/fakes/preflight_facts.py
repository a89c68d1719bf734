"""Clusters as ``kubectl gpushare preflight`` reads them, as the distributions really show themselves."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import convert

from gpushare_cli.decide.preflight.facts import PreflightFacts
from gpushare_cli.decide.preflight.objects import KubeSchedulerPod, PreflightNode
from gpushare_core.text.json_object import Json

SERVED = {
    "v1": frozenset(
        {"validatingadmissionpolicies", "mutatingadmissionpolicies", "validatingwebhookconfigurations"}
    )
}


def node_object(
    name: str = "gpu-1",
    *,
    labels: Mapping[str, str] | None = None,
    provider: str = "",
    capacity: Mapping[str, str] | None = None,
    allocatable: Mapping[str, str] | None = None,
    **machine: str,
) -> Json:
    """``machine``: fields of ``nodeInfo``; the rest as kubeadm's nodes have it on Debian. All of the
    ``capacity`` is allocatable, unless that is given."""
    amounts = {"cpu": "8", **(capacity or {})}
    node_info = {
        "architecture": "amd64",
        "operatingSystem": "linux",
        "osImage": "Debian GNU/Linux 12 (bookworm)",
        "kernelVersion": "6.1.0-37-amd64",
        "containerRuntimeVersion": "containerd://2.1.4",
        "kubeletVersion": "v1.36.3",
    }
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {"providerID": provider} if provider else {},
        "status": {
            "capacity": amounts,
            "allocatable": {**amounts, **(allocatable or {})},
            "nodeInfo": {**node_info, **machine},
        },
    }


def node(name: str = "gpu-1", **given: Any) -> PreflightNode:
    return convert(node_object(name, **given), PreflightNode)


def scheduler_object(
    *flags: str,
    node_name: str = "cp-1",
    labels: Mapping[str, str] | None = None,
    image: str = "registry.k8s.io/kube-scheduler:v1.36.3",
    source: str = "file",
) -> Json:
    """The mirror of a static pod, as kubeadm makes it; without ``source`` an ordinary pod."""
    static = {"kubernetes.io/config.mirror": "0c1f", "kubernetes.io/config.source": source}
    return {
        "metadata": {
            "name": f"kube-scheduler-{node_name}",
            "namespace": "kube-system",
            "labels": labels or {"component": "kube-scheduler", "tier": "control-plane"},
            "annotations": static if source else {},
        },
        "spec": {
            "nodeName": node_name,
            "containers": [{"name": "kube-scheduler", "image": image, "command": ["kube-scheduler", *flags]}],
        },
    }


KUBEADM_FLAGS = (
    "--authentication-kubeconfig=/etc/kubernetes/scheduler.conf",
    "--kubeconfig=/etc/kubernetes/scheduler.conf",
)


def scheduler(*flags: str, **given: Any) -> KubeSchedulerPod:
    return convert(scheduler_object(*(*KUBEADM_FLAGS, *flags), **given), KubeSchedulerPod)


def preflight_facts(**given: Any) -> PreflightFacts:
    """A kubeadm cluster of one node, unless a test says otherwise."""
    usual: Mapping[str, Any] = {
        "kubernetes": "v1.36.3",
        "nodes": [node()],
        "schedulers": [scheduler()],
        "admission": SERVED,
    }
    return PreflightFacts(**{**usual, **given})


NO_PODS: Sequence[KubeSchedulerPod] = ()

RKE2_SCHEDULER = convert(
    scheduler_object(
        "--permit-port-sharing=true",
        "--kubeconfig=/var/lib/rancher/rke2/server/cred/scheduler.kubeconfig",
        image="index.docker.io/rancher/hardened-kubernetes:v1.33.4-rke2r1-build20250814",
    ),
    KubeSchedulerPod,
)
TALOS_SCHEDULER = convert(
    scheduler_object(
        "--kubeconfig=/system/secrets/kubernetes/kube-scheduler/kubeconfig",
        "--config=/system/config/kubernetes/kube-scheduler/scheduler-config.yaml",
        labels={"k8s-app": "kube-scheduler", "tier": "control-plane"},
        source="http",
        image="registry.k8s.io/kube-scheduler:v1.34.1",
    ),
    KubeSchedulerPod,
)
OPENSHIFT_SCHEDULER = convert(
    {
        **scheduler_object(
            "--config=/etc/kubernetes/static-pod-resources/configmaps/config/config.yaml",
            labels={"app": "openshift-kube-scheduler", "scheduler": "true"},
            image="quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:5a1f",
        )
    },
    KubeSchedulerPod,
)

CLUSTERS: Mapping[str, PreflightFacts] = {
    "kubeadm": preflight_facts(),
    "k3s": preflight_facts(
        kubernetes="v1.33.4+k3s1",
        nodes=[
            node(
                provider="k3s://gpu-1",
                labels={"node.kubernetes.io/instance-type": "k3s"},
                kubeletVersion="v1.33.4+k3s1",
                containerRuntimeVersion="containerd://2.0.5-k3s2.32",
                osImage="Ubuntu 24.04.2 LTS",
                kernelVersion="6.8.0-63-generic",
            )
        ],
        schedulers=NO_PODS,
    ),
    "RKE2": preflight_facts(
        kubernetes="v1.33.4+rke2r1",
        nodes=[
            node(
                provider="rke2://gpu-1",
                labels={"node.kubernetes.io/instance-type": "rke2"},
                kubeletVersion="v1.33.4+rke2r1",
                containerRuntimeVersion="containerd://2.0.5-k3s2",
                osImage="Rocky Linux 9.6 (Blue Onyx)",
                kernelVersion="5.14.0-570.12.1.el9_6.x86_64",
            )
        ],
        schedulers=[RKE2_SCHEDULER],
    ),
    "k0s": preflight_facts(
        kubernetes="v1.34.1+k0s", nodes=[node(kubeletVersion="v1.34.1+k0s")], schedulers=NO_PODS
    ),
    "Talos": preflight_facts(
        kubernetes="v1.34.1",
        nodes=[
            node(
                kubeletVersion="v1.34.1",
                osImage="Talos (v1.11.2)",
                kernelVersion="6.12.48-talos",
                containerRuntimeVersion="containerd://2.1.4",
            )
        ],
        schedulers=[TALOS_SCHEDULER],
    ),
    "MicroK8s": preflight_facts(
        kubernetes="v1.32.3",
        nodes=[
            node(
                kubeletVersion="v1.32.3",
                osImage="Ubuntu 24.04.1 LTS",
                containerRuntimeVersion="containerd://1.6.36",
                labels={
                    "microk8s.io/cluster": "true",
                    "node.kubernetes.io/microk8s-controlplane": "microk8s-controlplane",
                },
            )
        ],
        schedulers=NO_PODS,
    ),
    "OpenShift": preflight_facts(
        kubernetes="v1.32.7",
        nodes=[
            node(
                kubeletVersion="v1.32.7",
                osImage="Red Hat Enterprise Linux CoreOS 9.6.20250805-0 (Plow)",
                kernelVersion="5.14.0-570.32.1.el9_6.x86_64",
                containerRuntimeVersion="cri-o://1.32.6-2.rhaos4.19.git3c3c3c3.el9",
                labels={"node.openshift.io/os_id": "rhel"},
            )
        ],
        schedulers=[OPENSHIFT_SCHEDULER],
    ),
    "EKS": preflight_facts(
        kubernetes="v1.33.4-eks-e386d34",
        nodes=[
            node(
                "ip-192-168-12-34.us-west-2.compute.internal",
                provider="aws:///us-west-2a/i-0abcdef1234567890",
                labels={"eks.amazonaws.com/nodegroup": "gpu", "eks.amazonaws.com/capacityType": "ON_DEMAND"},
                kubeletVersion="v1.33.4-eks-99d6cc0",
                osImage="Amazon Linux 2023.8.20250818",
                kernelVersion="6.12.40-64.114.amzn2023.x86_64",
                containerRuntimeVersion="containerd://1.7.27",
            )
        ],
        schedulers=NO_PODS,
    ),
    "GKE": preflight_facts(
        kubernetes="v1.33.4-gke.1134000",
        nodes=[
            node(
                "gke-prod-gpu-pool-1a2b3c4d-x9yz",
                provider="gce://project/us-central1-a/gke-prod-gpu-pool-1a2b3c4d-x9yz",
                labels={
                    "cloud.google.com/gke-nodepool": "gpu-pool",
                    "cloud.google.com/gke-accelerator": "nvidia-l4",
                },
                kubeletVersion="v1.33.4-gke.1134000",
                osImage="Container-Optimized OS from Google",
                kernelVersion="6.6.93+",
                containerRuntimeVersion="containerd://2.0.6",
            )
        ],
        schedulers=NO_PODS,
    ),
    "AKS": preflight_facts(
        kubernetes="v1.32.6",
        nodes=[
            node(
                "aks-gpu-12345678-vmss000000",
                provider="azure:///subscriptions/0/resourceGroups/mc_rg/providers/Microsoft.Compute/"
                "virtualMachineScaleSets/aks-gpu-12345678-vmss/virtualMachines/0",
                labels={
                    "kubernetes.azure.com/cluster": "MC_rg",
                    "kubernetes.azure.com/accelerator": "nvidia",
                },
                kubeletVersion="v1.32.6",
                osImage="Ubuntu 22.04.5 LTS",
                kernelVersion="5.15.0-1092-azure",
                containerRuntimeVersion="containerd://1.7.28-1",
            )
        ],
        schedulers=NO_PODS,
    ),
    "kind": preflight_facts(nodes=[node(provider="kind://docker/kind/kind-control-plane")]),
    "minikube": preflight_facts(nodes=[node(labels={"minikube.k8s.io/name": "minikube"})]),
}
"""Distribution -> a cluster of it."""
