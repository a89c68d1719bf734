"""The objects that the operator makes: what they may do, and how they are called."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.samples.operator import INSTALLATION, control_plane, policy, rule

from gpushare_core.api.share_node import NodeSpec
from gpushare_extender.main import DRAIN_SECONDS
from gpushare_operator.cluster.labels import HASH_ANNOTATION
from gpushare_operator.desired.daemon_sets import extender_daemon_set, plugin_daemon_set
from gpushare_operator.desired.hostctl_job import HostctlCommand, hostctl_job
from gpushare_operator.desired.names import Installation, job_name
from gpushare_operator.desired.share_nodes import share_node, share_node_spec

PLUGIN = plugin_daemon_set(policy(), INSTALLATION)["spec"]["template"]["spec"]
EXTENDER = extender_daemon_set(INSTALLATION)["spec"]["template"]["spec"]
INSTALL = hostctl_job(HostctlCommand.INSTALL, control_plane(), 1, INSTALLATION)["spec"]["template"]["spec"]
RESTORE = hostctl_job(HostctlCommand.RESTORE, control_plane(), 2, INSTALLATION)["spec"]["template"]["spec"]

EVERY_POD = [
    pytest.param(PLUGIN, id="plugin"),
    pytest.param(EXTENDER, id="extender"),
    pytest.param(INSTALL, id="install"),
    pytest.param(RESTORE, id="restore"),
]


@pytest.mark.parametrize("pod", EVERY_POD)
def test_no_container_has_more_rights_than_its_user(pod: Any) -> None:
    (container,) = pod["containers"]
    context = container["securityContext"]
    assert context["allowPrivilegeEscalation"] is False
    assert context["readOnlyRootFilesystem"] is True
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert "privileged" not in context
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}


@pytest.mark.parametrize("pod", EVERY_POD)
def test_every_pod_is_critical_and_tolerates_everything(pod: Any) -> None:
    assert pod["priorityClassName"].startswith("system-")
    assert pod["tolerations"] == [{"operator": "Exists"}]
    assert pod["containers"][0]["image"] == "gpushare:test"
    assert "memory" in pod["containers"][0]["resources"]["limits"]


def test_the_plugin_mounts_the_two_folders_of_the_kubelet_that_it_needs() -> None:
    mounts = [each["mountPath"] for each in PLUGIN["containers"][0]["volumeMounts"]]
    assert mounts == ["/var/lib/kubelet/device-plugins", "/var/lib/kubelet/pod-resources"]
    assert mounts == [each["hostPath"]["path"] for each in PLUGIN["volumes"]]
    assert "hostNetwork" not in PLUGIN


def test_the_extender_may_take_the_time_to_finish_its_binds() -> None:
    assert EXTENDER["terminationGracePeriodSeconds"] >= 2 * DRAIN_SECONDS


def test_the_extender_listens_on_the_loopback_of_its_host_only_and_mounts_nothing() -> None:
    assert EXTENDER["hostNetwork"] is True
    assert "volumes" not in EXTENDER
    assert EXTENDER["containers"][0]["args"] == ["--listen", "127.0.0.1:32766"]
    assert EXTENDER["securityContext"]["runAsUser"] == 65532


def test_hostctl_has_no_token_and_is_not_placed_by_the_scheduler() -> None:
    assert INSTALL["automountServiceAccountToken"] is False
    assert INSTALL["nodeName"] == "cp"
    assert INSTALL["restartPolicy"] == "Never"


def test_kubernetes_does_not_repeat_a_run_of_hostctl() -> None:
    job = hostctl_job(HostctlCommand.INSTALL, control_plane(), 1, INSTALLATION)
    assert job["spec"]["backoffLimit"] == 0
    assert "ttlSecondsAfterFinished" not in job["spec"]


def test_the_hash_follows_the_spec() -> None:
    def stamp(image: str) -> str:
        body = extender_daemon_set(Installation(image=image))
        return str(body["metadata"]["annotations"][HASH_ANNOTATION])

    assert stamp("a") == stamp("a")
    assert stamp("a") != stamp("b")


def test_the_selector_of_a_daemon_set_is_part_of_its_pods_labels() -> None:
    for body in (plugin_daemon_set(policy(), INSTALLATION), extender_daemon_set(INSTALLATION)):
        labels = body["spec"]["template"]["metadata"]["labels"]
        assert body["spec"]["selector"]["matchLabels"].items() <= labels.items()


def test_a_share_node_carries_all_that_the_rule_says() -> None:
    asked = policy("default", rule("gpu-1", reservedMemory="1Gi"))
    assert asked.spec is not None
    body = share_node(asked, "gpu-1", share_node_spec(asked, asked.spec.nodes[0]))
    parsed = NodeSpec.model_validate(body["spec"])
    assert parsed == NodeSpec.of_rule("default", asked.spec, asked.spec.nodes[0])
    assert body["metadata"]["ownerReferences"][0]["name"] == "default"


node_names = st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", fullmatch=True)


@given(node_names, st.integers(1, 99_999))
def test_a_job_is_never_called_longer_than_its_pods_label_may_be(node: str, sequence: int) -> None:
    assert len(job_name("install", node, sequence)) <= 63


@given(node_names, node_names)
def test_jobs_of_different_nodes_are_called_differently(one: str, other: str) -> None:
    assert (job_name("install", one, 1) == job_name("install", other, 1)) is (one == other)
