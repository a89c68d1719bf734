"""What a preflight answers to each question."""

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from msgspec import convert
from tests.fakes.preflight_facts import CLUSTERS, node, preflight_facts, scheduler

from gpushare_cli.decide.objects.installed import InstalledDeployment
from gpushare_cli.decide.preflight import facts as parts
from gpushare_cli.decide.preflight.answer import PreflightAnswer, Verdict
from gpushare_cli.decide.preflight.facts import KubeletAnswers, PreflightFacts, PreflightInstallation
from gpushare_cli.decide.preflight.objects import (
    BesideObject,
    ObservedDaemonSet,
    ObservedRuntimeClass,
    PreflightMeta,
    PreflightNode,
)
from gpushare_cli.decide.preflight.report import preflight_report
from gpushare_cli.decide.problems.facts import UnreadPart
from gpushare_cli.report import ExitStatus
from gpushare_core.api.names import DIALECT_LABEL, PLUGIN_NODE_LABEL

MANIFESTS = Path(__file__).resolve().parents[4] / "manifests" / "dedicated"
WITH_CARDS = {"nvidia.com/gpu.present": "true"}


def answer(question: str, facts: PreflightFacts) -> PreflightAnswer:
    return next(one for one in preflight_report(facts).answers if one.question == question)


def verdict(question: str, **facts: object) -> Verdict:
    return answer(question, preflight_facts(**facts)).verdict


# Versions


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("v1.31.9", Verdict.MISSING),
        ("v1.32.0", Verdict.OK),
        ("v1.37.2", Verdict.OK),
        ("v1.38.0-alpha.1", Verdict.NOTE),
        ("", Verdict.UNKNOWN),
    ],
)
def test_the_server_is_supported_or_too_old_or_not_tested(version: str, expected: Verdict) -> None:
    assert verdict("Kubernetes", kubernetes=version) is expected


def test_kubelets_up_to_three_minors_older_than_the_server_are_well() -> None:
    nodes = [node("a"), node("b"), node("c", kubeletVersion="v1.33.1")]
    found = answer("kubelets", preflight_facts(nodes=nodes))
    assert (found.verdict, found.found) == (
        Verdict.OK,
        "v1.36.3 on 2 nodes, v1.33.1 (3 minors older than the API server) on c",
    )


@pytest.mark.parametrize(
    ("kubelet", "why"),
    [
        ("v1.32.1", "4 minors older than the API server"),
        ("v1.37.0", "newer than the API server"),
        ("edge", "not a version"),
    ],
)
def test_a_kubelet_that_does_not_fit_the_server_is_named(kubelet: str, why: str) -> None:
    found = answer("kubelets", preflight_facts(nodes=[node("a"), node("old", kubeletVersion=kubelet)]))
    assert found.verdict is Verdict.NOTE
    assert why in found.found
    assert found.nodes == ("old",)


@pytest.mark.parametrize("question", ["kubelets", "systems"])
def test_a_node_whose_kubelet_has_said_nothing_is_unknown(question: str) -> None:
    silent = convert({"metadata": {"name": "new"}}, PreflightNode)
    found = answer(question, preflight_facts(nodes=[node("a"), silent]))
    assert (found.verdict, found.nodes) == (Verdict.UNKNOWN, ("new",))
    assert found.command == "kubectl describe node new"


# kube-scheduler


def test_a_static_pod_of_kubeadm_is_what_would_be_edited() -> None:
    kubelets = KubeletAnswers(static_pods={"cp-1": "/etc/kubernetes/manifests"})
    found = answer("kube-scheduler", preflight_facts(kubelets=kubelets))
    assert found.verdict is Verdict.OK
    assert found.found == (
        "v1.36.3, a static pod on cp-1; backend KubeScheduler adds --config and a mount to"
        " /etc/kubernetes/manifests/kube-scheduler.yaml"
    )


def test_where_the_kubelet_was_not_asked_the_path_is_said_to_be_an_assumption() -> None:
    assert answer("kube-scheduler", preflight_facts()).found.endswith(", where it is taken to be")


def test_a_configuration_of_yours_is_kept() -> None:
    facts = preflight_facts(schedulers=[scheduler("--config=/etc/kubernetes/my-config.yaml")])
    found = answer("kube-scheduler", facts)
    assert found.verdict is Verdict.OK
    assert "/etc/kubernetes/my-config.yaml is kept" in found.found


def test_a_configuration_that_the_host_folder_does_not_have_is_an_obstacle() -> None:
    facts = preflight_facts(schedulers=[scheduler("--config=/opt/scheduler.yaml")])
    found = answer("kube-scheduler", facts)
    assert found.verdict is Verdict.NOTE
    assert "/opt/scheduler.yaml" in found.found


def test_a_kubelet_with_another_folder_of_static_pods_is_an_obstacle() -> None:
    kubelets = KubeletAnswers(static_pods={"cp-1": "/srv/manifests"})
    found = answer("kube-scheduler", preflight_facts(kubelets=kubelets))
    assert found.verdict is Verdict.NOTE
    assert "the kubelet of cp-1 reads static pods from /srv/manifests" in found.found


def test_after_the_edit_it_is_connected() -> None:
    ours = "--config=/etc/kubernetes/gpushare/scheduler-config-adc5c720c48c.yaml"
    facts = preflight_facts(schedulers=[scheduler("--config=/etc/kubernetes/mine.yaml", ours)])
    assert answer("kube-scheduler", facts).found.endswith("; connected to gpushare")


def test_where_one_of_them_is_connected_the_others_are_not_said_to_be() -> None:
    ours = scheduler("--config=/etc/kubernetes/gpushare/scheduler-config-adc5c720c48c.yaml", node_name="cp-2")
    found = answer("kube-scheduler", preflight_facts(schedulers=[scheduler(), ours])).found
    assert "; connected to gpushare on cp-2; elsewhere backend KubeScheduler adds --config" in found


@pytest.mark.parametrize("name", ["RKE2", "Talos", "OpenShift"])
def test_a_static_pod_that_its_distribution_writes_is_not_edited(name: str) -> None:
    found = answer("kube-scheduler", CLUSTERS[name])
    assert found.verdict is Verdict.OK
    assert found.found.endswith("a static pod on cp-1; nothing of it is edited")


@pytest.mark.parametrize("name", ["k3s", "EKS", "GKE", "AKS", "MicroK8s"])
def test_no_kube_scheduler_is_well_where_dedicated_suits(name: str) -> None:
    assert answer("kube-scheduler", CLUSTERS[name]).verdict is Verdict.OK


def test_an_ordinary_pod_cannot_be_edited() -> None:
    facts = preflight_facts(nodes=[node(provider="kind://docker/kind/a")], schedulers=[scheduler(source="")])
    assert answer("kube-scheduler", facts).verdict is Verdict.NOTE


# Admission


@pytest.mark.parametrize(
    ("served", "expected"),
    [
        ({}, Verdict.MISSING),
        ({"v1": {"validatingadmissionpolicies"}}, Verdict.NOTE),
        ({"v1": {"validatingadmissionpolicies"}, "v1beta1": {"mutatingadmissionpolicies"}}, Verdict.NOTE),
        ({"v1": {"validatingadmissionpolicies", "mutatingadmissionpolicies"}}, Verdict.OK),
    ],
)
def test_what_dedicated_needs_of_admission(served: dict[str, set[str]], expected: Verdict) -> None:
    admission = {version: frozenset(kinds) for version, kinds in served.items()}
    assert answer("admission", replace(CLUSTERS["EKS"], admission=admission)).verdict is expected


def test_what_only_dedicated_needs_is_no_note_elsewhere() -> None:
    assert verdict("admission", admission={"v1": frozenset({"validatingadmissionpolicies"})}) is Verdict.OK


def test_the_version_to_write_is_named() -> None:
    served = {
        "v1": frozenset({"validatingadmissionpolicies"}),
        "v1beta1": frozenset({"mutatingadmissionpolicies"}),
    }
    assert answer("admission", replace(CLUSTERS["GKE"], admission=served)).to_do.startswith("Write v1beta1 ")


@pytest.mark.parametrize("version", ["v1beta1", "v1alpha1"])
def test_the_command_that_writes_the_version_does_so_in_a_shell(version: str, tmp_path: Path) -> None:
    served = {
        "v1": frozenset({"validatingadmissionpolicies"}),
        version: frozenset({"mutatingadmissionpolicies"}),
    }
    command = answer("admission", replace(CLUSTERS["GKE"], admission=served)).command
    shutil.copytree(MANIFESTS, tmp_path / "manifests/dedicated")
    subprocess.run(["bash", "-c", command], cwd=tmp_path, check=True)
    written = list(yaml.safe_load_all((tmp_path / "manifests/dedicated/pods.yaml").read_text()))
    assert {body["apiVersion"] for body in written} == {f"admissionregistration.k8s.io/{version}"}


# Machines


@pytest.mark.parametrize(
    ("runtime", "expected"),
    [
        ("containerd://2.1.4", Verdict.OK),
        ("containerd://2.0.5-k3s2.32", Verdict.OK),
        ("cri-o://1.32.6-2.rhaos4.19.git3c3c3c3.el9", Verdict.OK),
        ("containerd://1.7.27", Verdict.NOTE),
        ("containerd://1.6.36", Verdict.NOTE),
        ("cri-o://1.22.1", Verdict.NOTE),
        ("docker://28.0.1", Verdict.NOTE),
        ("containerd://Unknown", Verdict.NOTE),
        ("", Verdict.NOTE),
    ],
)
def test_which_runtimes_read_cdi_specifications(runtime: str, expected: Verdict) -> None:
    assert verdict("runtimes", nodes=[node(containerRuntimeVersion=runtime)]) is expected


def test_containerd_1_7_reads_them_only_when_told_to() -> None:
    facts = preflight_facts(nodes=[node(containerRuntimeVersion="containerd://1.7.27")])
    assert "enable_cdi = true" in answer("runtimes", facts).found


@pytest.mark.parametrize(
    ("architecture", "words"), [("arm64", "it is believed to run"), ("s390x", "Leave other out of policies")]
)
def test_another_processor_is_a_note(architecture: str, words: str) -> None:
    found = answer("systems", preflight_facts(nodes=[node(), node("other", architecture=architecture)]))
    assert (found.verdict, found.nodes) == (Verdict.NOTE, ("other",))
    assert words in found.to_do


def test_windows_is_a_note() -> None:
    facts = preflight_facts(nodes=[node(operatingSystem="windows", osImage="Windows Server 2022 Datacenter")])
    assert answer("systems", facts).verdict is Verdict.NOTE


@pytest.mark.parametrize(("versions", "expected"), [([2, 2], Verdict.OK), ([2, 1], Verdict.NOTE)])
def test_cgroups_are_what_kubelets_say(versions: list[int], expected: Verdict) -> None:
    kubelets = KubeletAnswers(cgroups={f"n{number}": version for number, version in enumerate(versions)})
    nodes = [node(f"n{number}") for number in range(5)]
    found = answer("cgroups", preflight_facts(nodes=nodes, kubelets=kubelets))
    assert found.verdict is expected
    assert found.found.endswith("; unknown on 3 others")


def test_cgroups_are_never_guessed() -> None:
    kubelets = KubeletAnswers(refusal="you may not ask kubelets (get nodes/proxy)")
    found = answer("cgroups", preflight_facts(kubelets=kubelets))
    assert (found.verdict, found.found) == (Verdict.UNKNOWN, kubelets.refusal)
    assert preflight_report(preflight_facts(kubelets=kubelets)).exit_status is ExitStatus.GOOD


# Cards


@pytest.mark.parametrize(
    "given",
    [
        {"labels": WITH_CARDS},
        {"labels": {"feature.node.kubernetes.io/pci-10de.present": "true"}},
        {"labels": {"feature.node.kubernetes.io/pci-0302_10de.present": "true"}},
        {"labels": {"cloud.google.com/gke-accelerator": "nvidia-l4"}},
        {"labels": {"eks.amazonaws.com/instance-gpu-manufacturer": "nvidia"}},
        {"labels": {"kubernetes.azure.com/accelerator": "nvidia"}},
        {"capacity": {"nvidia.com/gpu": "8"}},
    ],
)
def test_a_node_with_cards_is_seen(given: dict[str, dict[str, str]]) -> None:
    report = preflight_report(preflight_facts(nodes=[node("plain"), node("gpu", **given)]))
    assert report.card_nodes == ("gpu",)
    assert report.names == ["node/gpu"]


@pytest.mark.parametrize(
    "labels",
    [
        {
            "karpenter.k8s.aws/instance-gpu-name": "radeon-pro-v520",
            "karpenter.k8s.aws/instance-gpu-manufacturer": "amd",
        },
        {"kubernetes.azure.com/accelerator": "amd"},
    ],
)
def test_cards_of_others_are_not_nvidias(labels: dict[str, str]) -> None:
    assert preflight_report(preflight_facts(nodes=[node(labels=labels)])).card_nodes == ()


def test_a_node_that_offers_none_has_none() -> None:
    nodes = [node(capacity={"nvidia.com/gpu": "0"}, labels={"nvidia.com/gpu.present": "false"})]
    assert answer("cards", preflight_facts(nodes=nodes)).found == "no node is known to have NVIDIA cards"


def test_nodes_that_the_sample_policy_would_leave_out_are_named() -> None:
    nodes = [node("a", labels=WITH_CARDS), node("b", capacity={"nvidia.com/gpu": "1"})]
    found = answer("cards", preflight_facts(nodes=nodes))
    assert (found.verdict, found.nodes) == (Verdict.NOTE, ("b",))
    assert found.command == "kubectl label node b nvidia.com/gpu.present=true"


@pytest.mark.parametrize(
    "labels",
    [
        {"nvidia.com/cuda.driver-version.full": "580.65.06"},
        {
            "nvidia.com/cuda.driver.major": "580",
            "nvidia.com/cuda.driver.minor": "65",
            "nvidia.com/cuda.driver.rev": "06",
        },
    ],
)
def test_the_driver_is_what_feature_discovery_says(labels: dict[str, str]) -> None:
    nodes = [node("a", labels=WITH_CARDS | labels), node("b", labels=WITH_CARDS)]
    found = answer("driver", preflight_facts(nodes=nodes))
    assert (found.verdict, found.found) == (Verdict.OK, "580.65.06 on a; unknown on 1 other")


def test_a_driver_that_nobody_names_is_unknown() -> None:
    assert verdict("driver", nodes=[node(labels=WITH_CARDS)]) is Verdict.UNKNOWN


def test_a_runtime_class_of_nvidias_runtime_is_named() -> None:
    classes = [ObservedRuntimeClass(metadata=PreflightMeta(name="gpu"), handler="nvidia")]
    assert answer("RuntimeClass", preflight_facts(runtime_classes=classes)).found.startswith("gpu;")
    assert verdict("RuntimeClass") is Verdict.NOTE


# Other plugins


def daemon_set(name: str, image: str) -> ObservedDaemonSet:
    return convert(
        {
            "metadata": {"name": name, "namespace": "tools"},
            "spec": {"template": {"spec": {"containers": [{"image": image}]}}},
        },
        ObservedDaemonSet,
    )


@pytest.mark.parametrize(
    ("image", "resource", "name"),
    [
        ("nvcr.io/nvidia/k8s-device-plugin:v0.17.1", "nvidia.com/gpu", "NVIDIA's device plugin"),
        ("gke.gcr.io/nvidia-gpu-device-plugin@sha256:1a", "nvidia.com/gpu", "NVIDIA's device plugin"),
        ("docker.io/projecthami/hami:v2.6.1", "nvidia.com/gpu", "HAMi"),
        (
            "docker.io/volcanosh/volcano-device-plugin:v1.1.0",
            "volcano.sh/gpu-memory",
            "Volcano's device plugin",
        ),
        (
            "registry.cn-hangzhou.aliyuncs.com/acs/k8s-gpushare-plugin:v2-1.11-aff8a23",
            "aliyun.com/gpu-mem",
            "Aliyun's gpushare",
        ),
    ],
)
def test_other_device_plugins_are_named_with_their_nodes(image: str, resource: str, name: str) -> None:
    nodes = [node("a"), node("b", capacity={resource: "4"})]
    found = answer("other plugins", preflight_facts(nodes=nodes, daemon_sets=[daemon_set("ds", image)]))
    assert (found.verdict, found.nodes) == (Verdict.NOTE, ("b",))
    assert found.found == f"{name} (DaemonSet tools/ds) offers {resource} on b"


def test_cards_that_are_offered_by_a_plugin_nobody_knows_count_as_nvidias() -> None:
    found = answer("other plugins", preflight_facts(nodes=[node("b", capacity={"nvidia.com/gpu": "4"})]))
    assert found.found == "NVIDIA's device plugin offers nvidia.com/gpu on b"


def test_what_gpushare_itself_offers_by_a_dialects_name_is_not_others() -> None:
    labels = {PLUGIN_NODE_LABEL: "default", DIALECT_LABEL: "aliyun.com"}
    nodes = [node("ours", labels=labels, capacity={"aliyun.com/gpu-mem": "16"})]
    assert verdict("other plugins", nodes=nodes) is Verdict.OK


def test_a_plugin_that_has_gone_offers_nothing_though_its_capacity_stays_for_minutes() -> None:
    gone = node("b", capacity={"aliyun.com/gpu-mem": "16"}, allocatable={"aliyun.com/gpu-mem": "0"})
    assert verdict("other plugins", nodes=[gone]) is Verdict.OK


def test_a_node_that_both_serve_is_said_to_give_cards_twice() -> None:
    nodes = [node("both", labels={PLUGIN_NODE_LABEL: "default"}, capacity={"nvidia.com/gpu": "4"})]
    assert "On both, which gpushare shares" in answer("other plugins", preflight_facts(nodes=nodes)).to_do


def test_the_device_plugin_of_amds_cards_is_not_nvidias() -> None:
    assert verdict("other plugins", daemon_sets=[daemon_set("amd", "rocm/k8s-device-plugin")]) is Verdict.OK


@pytest.mark.parametrize(
    "image",
    [
        "nvcr.io/nvidia/k8s-dra-driver-gpu:v25.8.1",
        "registry.k8s.io/dra-driver-nvidia/dra-driver-nvidia-gpu:v0.4.1",
    ],
)
def test_a_driver_that_gives_cards_to_resource_claims_is_named(image: str) -> None:
    found = answer("other plugins", preflight_facts(daemon_sets=[daemon_set("dra", image)]))
    assert found.verdict is Verdict.NOTE
    assert found.found == "NVIDIA's DRA driver (DaemonSet tools/dra), which gives cards to ResourceClaims"


def test_our_own_daemon_set_is_no_other_plugin() -> None:
    ours = daemon_set("gpushare-plugin-default", "registry.example.com/gpushare:0.1.0")
    assert verdict("other plugins", daemon_sets=[ours]) is Verdict.OK


# The installation


def deployment() -> InstalledDeployment:
    metadata = {"name": "gpushare-operator", "labels": {"app.kubernetes.io/version": "0.4.0"}}
    return convert({"metadata": metadata}, InstalledDeployment)


def test_what_is_installed_in_part_is_said() -> None:
    assert verdict("gpushare", own=PreflightInstallation(has_crds=True)) is Verdict.NOTE
    assert verdict("gpushare", own=PreflightInstallation(deployment=deployment())) is Verdict.NOTE
    assert verdict("gpushare", own=PreflightInstallation()) is Verdict.OK


def own_namespace(**labels: str) -> BesideObject:
    return BesideObject(metadata=PreflightMeta(name="gpushare-system", labels=labels))


@pytest.mark.parametrize(
    ("level", "expected"),
    [("privileged", Verdict.OK), ("baseline", Verdict.MISSING), ("restricted", Verdict.MISSING)],
)
def test_the_namespace_has_to_admit_privileged_pods(level: str, expected: Verdict) -> None:
    labels = {"pod-security.kubernetes.io/enforce": level}
    own = PreflightInstallation(namespace_object=own_namespace(**labels))
    assert verdict("namespace", own=own) is expected


def test_quotas_of_others_are_a_note() -> None:
    quotas = [BesideObject(metadata=PreflightMeta(name=name)) for name in ("gpushare", "team")]
    own = PreflightInstallation(namespace_object=own_namespace(), quotas=quotas)
    found = answer("namespace", preflight_facts(own=own))
    assert found.verdict is Verdict.NOTE
    assert found.found.endswith("has the ResourceQuota team")


def test_who_may_not_install_is_told_before_and_not_after_the_installation() -> None:
    rights = {"create Namespaces": True, "create ClusterRoles": False}
    before = preflight_facts(own=PreflightInstallation(rights=rights))
    assert answer("rights", before).found == "you may not create ClusterRoles"
    assert preflight_report(before).exit_status is ExitStatus.NO
    installed = PreflightInstallation(rights=rights, has_crds=True, deployment=deployment())
    assert preflight_report(preflight_facts(own=installed)).exit_status is ExitStatus.GOOD


# The report


def test_what_could_not_be_read_is_unknown_for_its_questions_alone() -> None:
    unread = [UnreadPart(part=parts.DAEMON_SETS, reason="daemonsets is forbidden: no")]
    report = preflight_report(preflight_facts(unread=unread))
    unknown = [one.question for one in report.of(Verdict.UNKNOWN)]
    assert unknown == ["cgroups", "driver", "other plugins"]
    assert report.exit_status is ExitStatus.CANNOT_LOOK


def test_without_nodes_no_backend_is_recommended() -> None:
    unread = [UnreadPart(part=parts.NODES, reason="nodes is forbidden: no")]
    report = preflight_report(preflight_facts(nodes=(), unread=unread))
    assert report.recommended_backend == ""
    assert report.distribution == ""


def test_a_cluster_without_nodes_is_answered() -> None:
    report = preflight_report(preflight_facts(nodes=(), schedulers=()))
    assert report.exit_status is ExitStatus.GOOD
