"""Cgroups of containers, found in a folder like /sys/fs/cgroup; and the hook in a CDI specification."""

from pathlib import Path

import pytest

from gpushare_plugin.decide.use.cgroups import CgroupOwner
from gpushare_plugin.isolation.cdi_hook import has_toolkit_hook
from gpushare_plugin.isolation.cgroup_tree import CgroupTree

UID = "5c1f3b0e-8a4d-4f0e-9d2a-7b6c5d4e3f21"
UNDERSCORED = UID.replace("-", "_")
OTHER = "0f9e8d7c-6b5a-4948-8372-615049382716"
ID, SANDBOX = "3e1f" * 16, "ab09" * 16
SYSTEMD = f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UNDERSCORED}.slice"
LAYOUTS = [
    pytest.param(f"{SYSTEMD}/cri-containerd-{{}}.scope", id="containerd, systemd"),
    pytest.param(f"{SYSTEMD}/crio-{{}}.scope", id="CRI-O, systemd"),
    pytest.param(f"kubepods/burstable/pod{UID}/{{}}", id="cgroupfs"),
    pytest.param(
        f"docker/{SANDBOX}/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{UNDERSCORED}.slice/"
        "cri-containerd-{}.scope",
        id="the node is itself a container",
    ),
    pytest.param(
        f"system.slice/containerd.service/kubepods-burstable-pod{UNDERSCORED}.slice:cri-containerd:{{}}",
        id="containerd with cgroupfs under a kubelet with systemd",
    ),
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "cgroup.controllers").write_text("cpu memory\n")
    (tmp_path / f"kubepods/pod{OTHER}" / ID).mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_pods_containers_are_found_wherever_kubelet_and_runtime_put_them(root: Path, layout: str) -> None:
    for identifier in (ID, SANDBOX):
        (root / layout.format(identifier)).mkdir(parents=True)
    found = CgroupTree(root).look({UID})
    assert found.unified
    assert found.containers == {
        CgroupOwner(UID, identifier): (str(root / layout.format(identifier)),) for identifier in (ID, SANDBOX)
    }


def test_the_cgroup_below_into_which_crun_puts_the_processes_is_found_too(root: Path) -> None:
    own = root / f"kubepods/pod{UID}/crio-{ID}"
    (own / "container").mkdir(parents=True)
    (own / "others").mkdir()
    assert CgroupTree(root).look({UID}).containers == {
        CgroupOwner(UID, ID): (str(own), str(own / "container"))
    }


def test_what_starts_and_ends_after_the_first_look_is_seen(root: Path) -> None:
    tree, pod = CgroupTree(root), root / f"kubepods/pod{UID}"
    assert tree.look({UID}).containers == {}
    (pod / SANDBOX).mkdir(parents=True)
    assert tree.look({UID}).containers.keys() == {CgroupOwner(UID, SANDBOX)}
    (pod / ID).mkdir()
    assert tree.look({UID}).containers.keys() == {CgroupOwner(UID, SANDBOX), CgroupOwner(UID, ID)}
    (pod / ID).rmdir()
    assert tree.look({UID}).containers.keys() == {CgroupOwner(UID, SANDBOX)}
    assert tree.look({UID, OTHER}).containers.keys() == {CgroupOwner(UID, SANDBOX), CgroupOwner(OTHER, ID)}


def test_a_container_cannot_pass_a_cgroup_of_its_own_off_as_anothers(root: Path) -> None:
    own = root / f"kubepods/pod{UID}" / ID
    for folder in (own, root / f"kubepods/pod{OTHER}" / ID / f"pod{UID}" / ID):
        folder.mkdir(parents=True)
    assert CgroupTree(root).look({UID}).containers == {CgroupOwner(UID, ID): (str(own),)}


def test_cgroups_of_version_1_are_told(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    assert not CgroupTree(tmp_path).look({UID}).unified


def test_a_link_leads_nowhere(root: Path) -> None:
    (root / "loop").symlink_to(root)
    assert CgroupTree(root).look({UID}).containers == {}


HOOK = (
    'hooks: [{hookName: createRuntime, path: /usr/bin/nvidia-cdi-hook, args: ["apply-cuda-memory-limits"]}]'
)
SPECIFICATION = "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\n"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({}, None, id="no specification"),
        pytest.param({"a.yaml": "kind: example.com/nic\n"}, None, id="one of something else"),
        pytest.param({"nvidia.txt": SPECIFICATION}, None, id="no file of a specification"),
        pytest.param({"nvidia.yaml": SPECIFICATION}, False, id="one of an older toolkit"),
        pytest.param({"nvidia.yaml": SPECIFICATION + HOOK}, True, id="one with the hook"),
        pytest.param({"nvidia.json": SPECIFICATION + HOOK, "b.yaml": SPECIFICATION}, True, id="one of two"),
    ],
)
def test_the_toolkits_hook_is_looked_for_in_the_nodes_specification(
    tmp_path: Path, *, files: dict[str, str], expected: bool | None
) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    assert has_toolkit_hook("nvidia.com/gpu", [tmp_path / "missing", tmp_path]) is expected
