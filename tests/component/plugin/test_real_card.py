"""The plugin on a node with a real NVIDIA card: what it reads, and whose memory it sees in use.

Without a card ``test_nvml.py``, ``test_nvml_use.py`` and ``test_nvml_health.py`` try the same through
a library that answers as the driver does.
"""

import ctypes
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.fakes import cuda_program, toolkit_hook
from tests.fakes.nvml_driver import FIRST_WITH_LIMITS
from tests.fakes.plugin_node import Node
from tests.samples.plugin import container, pod_json

from gpushare_core.placement.quantity import parse_memory
from gpushare_plugin.devices.nvml.library import LIBRARY, NvmlLibrary
from gpushare_plugin.devices.nvml.source import NvmlSource
from gpushare_plugin.devices.use import NO_LIMIT, CardCgroup

GIB = 2**30
UID = "5c1f3b0e-8a4d-4f0e-9d2a-7b6c5d4e3f21"
CONTAINER = "a" * 64
CGROUPS = Path("/sys/fs/cgroup")
CONTEXT = GIB
"""What a process has on a card besides what it asks for is less."""


def _has_driver() -> bool:
    with suppress(OSError):
        ctypes.CDLL("libnvidia-ml.so.1")
        return True
    return False


pytestmark = pytest.mark.skipif(not _has_driver(), reason="no NVIDIA driver on this machine")


def nvidia_smi(fields: str) -> list[list[str]]:
    """What NVIDIA's own program says of each card."""
    program = shutil.which("nvidia-smi")
    if program is None:
        pytest.skip("no nvidia-smi on this machine")
    command = [program, f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return [[field.strip() for field in line.split(",")] for line in lines]


@contextmanager
def process_with(memory: int) -> Iterator[int]:
    """A process that has ``memory`` bytes of the first card. Yields its PID."""
    command = [sys.executable, cuda_program.__file__, str(memory)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "taken\n"
        try:
            yield process.pid
        finally:
            process.stdin.close()


@pytest.fixture
def container_cgroup() -> Iterator[Path]:
    """As a kubelet and containerd name it."""
    folder = CGROUPS / "kubepods" / f"pod{UID}" / CONTAINER
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        pytest.skip(f"no cgroups can be made here: {error}")
    yield folder
    for path in (folder, folder.parent, folder.parent.parent):
        path.rmdir()


async def test_the_cards_are_those_that_nvidia_smi_names() -> None:
    reading = await NvmlSource(NvmlLibrary()).read()
    assert reading.problem is None
    assert reading.left_out == ()
    assert all(card.healthy for card in reading.cards), reading
    named = nvidia_smi("index,uuid,name,memory.total,compute_cap")
    seen = [
        [str(card.index), card.uuid, card.model, str(card.memory // 2**20), f"{card.compute_score / 100:.1f}"]
        for card in reading.cards
    ]
    assert seen == named


async def test_a_node_offers_the_memory_of_its_real_cards(idle_node: Node) -> None:
    node = idle_node
    node.share(devices={"source": "NVML"})
    await node.start_plugin()
    await node.until_registered()
    memory = [int(mebibytes) for (mebibytes,) in nvidia_smi("memory.total")]
    assert [card.units for card in node.share_node.status.cards] == [size // 1024 for size in memory]
    assert node.condition("CardsHealthy")[0] == "True", node.message("CardsHealthy")


async def test_a_container_is_seen_to_use_what_it_takes_and_to_exceed_what_it_asked_for(
    idle_node: Node, container_cgroup: Path
) -> None:
    node = idle_node
    node.share(devices={"source": "NVML"}, measurement={"scope": "Containers", "intervalSeconds": 10})
    await node.start_plugin()
    await node.until_registered()
    pod = pod_json("a", container(units=4), uid=UID)
    pod["status"]["containerStatuses"] = [{"name": "main", "containerID": f"containerd://{CONTAINER}"}]
    await node.run_pod(pod)
    await node.until("the pod", lambda: "a" in node.on_cards())
    with process_with(2 * GIB) as pid:
        (container_cgroup / "cgroup.procs").write_text(str(pid))
        await node.until("the use", lambda: 2 * GIB < used(node) < 2 * GIB + CONTEXT, within=60)
        assert node.condition("MemoryExceeded") == ("False", "WithinRequests")
    with process_with(6 * GIB) as pid:
        (container_cgroup / "cgroup.procs").write_text(str(pid))
        await node.until("the excess", lambda: node.condition("MemoryExceeded")[0] == "True", within=60)
        assert "default/a" in node.message("MemoryExceeded")
    await node.until("the end", lambda: node.condition("MemoryExceeded")[0] == "False", within=60)


def test_the_driver_limits_a_cgroup_where_its_library_can(container_cgroup: Path) -> None:
    """The version and the limits are NVIDIA's own; a driver before r615 has none."""
    ((uuid, version),) = nvidia_smi("uuid,driver_version")[:1]
    library, cgroup = NvmlLibrary(), CardCgroup(uuid, str(container_cgroup))
    found = library.limits([cgroup])
    assert found.version == version
    assert found.supported is (int(version.partition(".")[0]) >= FIRST_WITH_LIMITS)
    if found.supported:
        assert found.cgroups[cgroup].limit == NO_LIMIT
        toolkit_hook.set_limits(Path(LIBRARY), container_cgroup, [uuid], hard=4 * GIB)
        assert library.limits([cgroup]).cgroups[cgroup].limit == 4 * GIB
    library.close()


def used(node: Node) -> int:
    """Bytes, of the pod's container."""
    return sum(
        parse_memory(share.used_memory) for card in node.share_node.status.cards for share in card.pods
    )
