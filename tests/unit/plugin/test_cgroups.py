"""Whose a process is, by /proc/PID/cgroup as runtimes and kubelets write it."""

import pytest

from gpushare_plugin.decide.use.cgroups import CgroupOwner, cgroup_owners

UID = "5c1f3b0e-8a4d-4f0e-9d2a-7b6c5d4e3f21"
UNDERSCORED = UID.replace("-", "_")
OTHER = "0f9e8d7c-6b5a-4948-8372-615049382716"
STATIC = "8f2b1c0d9e8f7a6b5c4d3e2f1a0b9c8d"
ID = "3e1f" * 16
INNER = "ab09" * 16

OURS = [CgroupOwner(UID, ID)]
POD_ONLY = [CgroupOwner(UID, "")]


def v1(path: str) -> str:
    controllers = ("12:memory", "11:pids", "5:cpu,cpuacct", "1:name=systemd")
    return "".join(f"{controller}:{path}\n" for controller in controllers)


def v2(path: str) -> str:
    return f"0::{path}\n"


BURSTABLE = f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UNDERSCORED}.slice"
BEST_EFFORT = f"kubepods-besteffort.slice/kubepods-besteffort-pod{UNDERSCORED}.slice"
BELOW_ROOT = "/kubelet.slice/kubelet-kubepods.slice"
CONTAINERD = f"cri-containerd-{ID}.scope"
CGROUPFS = f"/kubepods/burstable/pod{UID}"
NESTED = f"/kubepods/burstable/pod{OTHER}/{INNER}/kubelet/kubepods/burstable/pod{UID}/{ID}"

CASES = [
    pytest.param(v2(f"{BURSTABLE}/{CONTAINERD}"), OURS, id="containerd, v2, systemd, burstable"),
    pytest.param(
        v2(f"/kubepods.slice/{BEST_EFFORT}/{CONTAINERD}"), OURS, id="containerd, v2, systemd, best effort"
    ),
    pytest.param(
        v2(f"/kubepods.slice/kubepods-pod{UNDERSCORED}.slice/{CONTAINERD}"),
        OURS,
        id="containerd, v2, systemd, guaranteed",
    ),
    pytest.param(v2(f"{BURSTABLE}/crio-{ID}.scope"), OURS, id="CRI-O, v2, systemd"),
    pytest.param(
        v2(f"{BURSTABLE}/crio-{ID}.scope/container"), OURS, id="CRI-O with crun, v2: a cgroup below its own"
    ),
    pytest.param(
        v2(f"{BURSTABLE}/crio-conmon-{INNER}.scope"), POD_ONLY, id="CRI-O's monitor is no container"
    ),
    pytest.param(v2(f"{BURSTABLE}/docker-{ID}.scope"), OURS, id="Docker by cri-dockerd, v2, systemd"),
    pytest.param(v2(f"{CGROUPFS}/{ID}"), OURS, id="containerd, v2, cgroupfs"),
    pytest.param(v2(f"/kubepods/pod{UID}/{ID}"), OURS, id="cgroupfs, guaranteed"),
    pytest.param(v2(f"/kubepods/besteffort/pod{UID}/crio-{ID}"), OURS, id="CRI-O, cgroupfs"),
    pytest.param(v1(f"{CGROUPFS}/{ID}"), OURS, id="containerd or Docker, v1, cgroupfs"),
    pytest.param(v1(f"{BURSTABLE}/{CONTAINERD}"), OURS, id="containerd, v1, systemd"),
    pytest.param(v1(f"{BURSTABLE}/docker-{ID}.scope") + "0::/\n", OURS, id="Docker, v1 and v2 together"),
    pytest.param(
        "13:misc:/\n12:rdma:/\n" + v1(f"{CGROUPFS}/{ID}") + "0::/system.slice/containerd.service\n",
        OURS,
        id="v1: some hierarchies know nothing",
    ),
    pytest.param(
        v1(f"/system.slice/containerd.service/kubepods-burstable-pod{UNDERSCORED}.slice:cri-containerd:{ID}"),
        OURS,
        id="containerd with cgroupfs under a kubelet with systemd",
    ),
    pytest.param(
        v2(
            f"{BELOW_ROOT}/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-pod{UNDERSCORED}.slice/{CONTAINERD}"
        ),
        OURS,
        id="kubelet with a cgroup root, as in kind",
    ),
    pytest.param(
        v2(f"/docker/{INNER}{BELOW_ROOT}/kubelet-kubepods-pod{UNDERSCORED}.slice/{CONTAINERD}"),
        OURS,
        id="the node is itself a container",
    ),
    pytest.param(
        v2(f"/../../kubepods-burstable-pod{UNDERSCORED}.slice/{CONTAINERD}"),
        OURS,
        id="v2, seen from a pod's own cgroup namespace",
    ),
    pytest.param(v2(f"/../../../{BEST_EFFORT}/{CONTAINERD}"), OURS, id="v2, from another class's pod"),
    pytest.param(v2(f"/../../../pod{UID}/{ID}"), OURS, id="v2, cgroupfs, from a pod"),
    pytest.param(v2(f"{CGROUPFS}/{ID}/system.slice/nvidia.service"), OURS, id="systemd within the container"),
    pytest.param(v2(f"{CGROUPFS}/{ID}/docker/{INNER}"), OURS, id="Docker within the container"),
    pytest.param(
        v2(NESTED),
        [CgroupOwner(OTHER, INNER), CgroupOwner(UID, ID)],
        id="a node within a pod: the outermost first",
    ),
    pytest.param(v2(f"/kubepods/burstable/pod{STATIC}/{ID}"), [CgroupOwner(STATIC, ID)], id="static pod"),
    pytest.param(
        v2(BURSTABLE.replace(UNDERSCORED, STATIC) + f"/crio-{ID}.scope"),
        [CgroupOwner(STATIC, ID)],
        id="static pod, systemd",
    ),
    pytest.param(
        v2(f"{CGROUPFS}"), POD_ONLY, id="a sandbox that runs its containers itself, such as gVisor's"
    ),
    pytest.param(
        v1(f"{CGROUPFS}") + v2(f"{CGROUPFS}/{ID}"), OURS, id="one hierarchy knows more than the others"
    ),
    pytest.param(v2(f"{BURSTABLE}/kata_overhead"), POD_ONLY, id="Kata"),
    pytest.param(v2("/user.slice/user-1000.slice/session-3.scope"), [], id="a person on the node"),
    pytest.param(v2("/system.slice/nvidia-persistenced.service"), [], id="a service of the node"),
    pytest.param(v2(f"/system.slice/docker-{ID}.scope"), [], id="a container of no pod"),
    pytest.param(v2("/"), [], id="in the plugin's own cgroup"),
    pytest.param(v2(f"/kubepods/burstable/pod{UID[:-1]}/{ID}"), [], id="no UID"),
    pytest.param("", [], id="the process is gone"),
    pytest.param("\x00::\n::::\nnonsense", [], id="nonsense"),
]


@pytest.mark.parametrize(("text", "owners"), CASES)
def test_whose_a_process_is(text: str, owners: list[CgroupOwner]) -> None:
    assert cgroup_owners(text) == owners
