"""`injection: CDI` in real containers: what the node's CDI specification says of a card is what a container
has inside, for cards of an inventory and for NVIDIA's."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.fixtures import own_namespace
from tests.e2e.image_build import IMAGE, build_image
from tests.e2e.observe import PODS, Json, watch_until
from tests.e2e.outcomes import is_running
from tests.e2e.product import Product, policy
from tests.e2e.real_containers import kill_container, real_cluster
from tests.e2e.user_images import add_links
from tests.e2e.workloads import MEMORY, create
from tests.fakes.nvml_driver import StubDriver

from gpushare_localcluster.cluster import LocalCluster

pytestmark = pytest.mark.e2e

NODE = "gpu-1"
SPECIFICATIONS = "/etc/cdi"
VENDOR = f"{SPECIFICATIONS}/enflame.json"
NVIDIA = f"{SPECIFICATIONS}/nvidia.json"
INVENTORY = "/etc/gpushare/inventory.yaml"
FIRST, SECOND = "GCU-1", "GCU-2"
UUIDS = ("GPU-11111111-0000-0000-0000-000000000000", "GPU-22222222-0000-0000-0000-000000000000")
LIBRARY = "libnvidia-ml.so.1"
DRIVER = "/var/lib/kubelet/device-plugins/driver"
"""On the node, and seen by the plugin: where its image finds what NVIDIA's container runtime would mount."""
WHOLE, PART = 16, 4
"""Units of 1 GiB; a card has 16."""
LOOK = """
import json, os, stat
nodes = {path.name: path.stat() for path in os.scandir("/dev") if path.name.startswith(("gcu", "nvidia"))}
assert all(stat.S_ISCHR(node.st_mode) for node in nodes.values()), nodes
devices = {name: [os.major(node.st_rdev), os.minor(node.st_rdev)] for name, node in nodes.items()}
mounts = {line.split()[4]: line.split()[5] for line in open("/proc/self/mountinfo")}
for name in devices:
    os.close(os.open("/dev/" + name, os.O_RDWR))
print(json.dumps({"devices": devices, "mounts": mounts, "environment": dict(os.environ)}))
"""
"""What a container has, as a program in it finds it. Opens every device node: the kernel has to allow it."""
NULL, ZERO = [1, 3], [1, 5]
"""Numbers of devices that every machine has."""


@dataclass(frozen=True)
class Inside:
    """What a container has: device node -> its numbers, mount point -> options, variables."""

    devices: Mapping[str, Sequence[int]]
    mounts: Mapping[str, str]
    environment: Mapping[str, str]

    def variables(self, *names: str) -> list[str | None]:
        return [self.environment.get(name) for name in names]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    folder = tmp_path_factory.mktemp("images")
    build_image(folder / "built.tar")
    add_links(folder / "built.tar", folder / "gpushare.tar", {f"/usr/lib/{LIBRARY}": f"{DRIVER}/{LIBRARY}"})
    with real_cluster(tmp_path_factory.mktemp("real"), [folder / "gpushare.tar"]) as running:
        yield running


@pytest.fixture(scope="module")
def installed(cluster: LocalCluster) -> Product:
    product = Product(cluster)
    product.install()
    return product


@pytest.fixture(scope="module")
def enflame(installed: Product) -> Product:
    """Two cards that an inventory lists, with their vendor's specification."""
    cards = [{"uuid": uuid, "memory": "16Gi", "cdiName": f"gcu{n}"} for n, uuid in enumerate((FIRST, SECOND))]
    container = {"environment": {"ENFLAME_LOG": "1"}, "deviceNodes": ["/dev/gcu-by-the-kubelet"]}
    put(installed.cluster, INVENTORY, {"cards": cards, "container": container, "cdiKind": "enflame.com/gcu"})
    run_on_node(installed.cluster, "mkdir -p /opt/enflame; echo efml > /opt/enflame/library")
    put(installed.cluster, VENDOR, vendors_specification())
    apply(installed, {"source": "Inventory", "injection": "CDI"})
    return installed


def vendors_specification() -> Json:
    devices = {"gcu0": "/dev/null", "gcu1": "/dev/zero"}
    library = {"hostPath": "/opt/enflame", "containerPath": "/usr/local/enflame", "options": ["ro", "bind"]}
    return {
        "cdiVersion": "0.6.0",
        "kind": "enflame.com/gcu",
        "devices": [{"name": name, "containerEdits": device(name, host)} for name, host in devices.items()],
        "containerEdits": {**device("gcuctl", "/dev/null"), "mounts": [library], "env": ["ENFLAME_CDI=yes"]},
    }


def device(name: str, host: str) -> Json:
    return {"deviceNodes": [{"path": f"/dev/{name}", "hostPath": host, "permissions": "rw"}]}


@pytest.fixture
def nvidia(installed: Product) -> Product:
    """Two cards of NVIDIA's, no policy being left; a specification as `nvidia-ctk cdi generate` writes it."""
    folder = installed.cluster.node_path(NODE, DRIVER)
    folder.mkdir()
    driver = StubDriver(folder)
    for uuid in UUIDS:
        driver.add_card(uuid)
    driver.install()
    # What the driver makes on a real node.
    nodes = "".join(f"mknod /dev/{name} c 1 3;" for name in ("nvidia0", "nvidia1", "nvidiactl"))
    hook = f"/run/nvidia-cdi-hook; printf '#!/bin/sh\\ncat > {DRIVER}/hook' > /run/nvidia-cdi-hook"
    run_on_node(
        installed.cluster, f"{nodes} touch /run/libcuda.so; touch {hook}; chmod 755 /run/nvidia-cdi-hook"
    )
    put(installed.cluster, NVIDIA, nvidias_specification())
    apply(installed, {"source": "NVML", "injection": "CDI"})
    return installed


def nvidias_specification() -> Json:
    def node(name: str) -> Json:
        return {"deviceNodes": [{"path": f"/dev/{name}"}]}

    cards = {**{uuid: node(f"nvidia{index}") for index, uuid in enumerate(UUIDS)}, "all": node("nvidia0")}
    library = {"hostPath": "/run/libcuda.so", "containerPath": "/usr/lib/libcuda.so.615.71.09"}
    hook = {"hookName": "createContainer", "path": "/run/nvidia-cdi-hook", "args": ["nvidia-cdi-hook"]}
    return {
        "cdiVersion": "0.5.0",
        "kind": "nvidia.com/gpu",
        "devices": [{"name": name, "containerEdits": edits} for name, edits in cards.items()],
        "containerEdits": {
            **node("nvidiactl"),
            "env": ["NVIDIA_VISIBLE_DEVICES=void"],
            "hooks": [hook],
            "mounts": [{**library, "options": ["ro", "nosuid", "nodev", "rbind", "rprivate"]}],
        },
    }


def put(cluster: LocalCluster, path: str, content: Json) -> None:
    folder = Path(path).parent
    run_on_node(
        cluster, f"mkdir -p {folder} && cat > {path}.new && mv {path}.new {path}", json.dumps(content)
    )


def run_on_node(cluster: LocalCluster, script: str, stdin: str = "") -> None:
    done = cluster.node_exec(NODE, ["sh", "-ec", script], stdin=stdin)
    assert done.returncode == 0, done.stderr


def apply(product: Product, devices: Mapping[str, Any]) -> None:
    product.apply(policy("default", nodes=[NODE], devices=devices))
    product.await_ready("default")


@pytest.fixture
def namespace(cluster: LocalCluster) -> Iterator[str]:
    with own_namespace(cluster) as name:
        yield name


def user(name: str, units: int) -> Json:
    container = {
        "name": "main",
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "command": ["python3", "-c", "import signal; signal.pause()"],
        "resources": {"limits": {MEMORY: str(units)}},
    }
    spec = {"containers": [container], "terminationGracePeriodSeconds": 1}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def run(product: Product, namespace: str, name: str, units: int) -> Inside:
    create(product.cluster, namespace, [user(name, units)])
    until_running(product, namespace, name)
    return look(product, namespace, name)


def restart(product: Product, namespace: str, name: str) -> Inside:
    kill_container(product.cluster, namespace, name)
    until_running(product, namespace, name, restarts=1)
    return look(product, namespace, name)


def until_running(product: Product, namespace: str, name: str, *, restarts: int = 0) -> None:
    def runs(pod: Json) -> bool:
        entries = pod.get("status", {}).get("containerStatuses", [])
        return is_running(pod) and all(entry["restartCount"] >= restarts for entry in entries)

    until_pod(product, namespace, name, runs, what=f"pod {name} runs, restarted {restarts} times")


def until_pod(product: Product, namespace: str, name: str, holds: Any, *, what: str) -> None:
    watch_until(
        product.cluster,
        PODS.format(namespace=namespace),
        lambda pods: any(pod["metadata"]["name"] == name and holds(pod) for pod in pods),
        what=what,
        describe=lambda pods: [pod.get("status") for pod in pods],
    )


def look(product: Product, namespace: str, name: str) -> Inside:
    said = product.cluster.kubectl("exec", "-n", namespace, name, "--", "python3", "-c", LOOK)
    return Inside(**json.loads(said))


def test_a_container_has_what_the_specification_says_of_its_card(enflame: Product, namespace: str) -> None:
    first = run(enflame, namespace, "first", WHOLE)
    second = run(enflame, namespace, "second", WHOLE)
    assert first.variables("GPUSHARE_CARD", "ENFLAME_LOG", "ENFLAME_CDI") == [FIRST, "1", "yes"]
    assert (first.devices, second.devices) == (
        {"gcu0": NULL, "gcuctl": NULL},
        {"gcu1": ZERO, "gcuctl": NULL},
    )
    assert "ro" in first.mounts["/usr/local/enflame"].split(",")


def test_a_restarted_container_has_the_same_again(enflame: Product, namespace: str) -> None:
    before = run(enflame, namespace, "user", PART)
    assert restart(enflame, namespace, "user") == before


def test_without_the_specification_nothing_new_starts_and_the_pod_says_why(
    enflame: Product, namespace: str
) -> None:
    before = run(enflame, namespace, "before", WHOLE)
    run_on_node(enflame.cluster, f"rm {VENDOR}")
    create(enflame.cluster, namespace, [user("after", WHOLE)])
    until_pod(
        enflame,
        namespace,
        "after",
        lambda pod: "unresolvable CDI devices enflame.com/gcu=gcu1" in json.dumps(pod["status"]),
        what="the runtime's error names what it does not know",
    )
    assert look(enflame, namespace, "before") == before
    put(enflame.cluster, VENDOR, vendors_specification())
    until_running(enflame, namespace, "after")
    assert look(enflame, namespace, "after").devices == {"gcu1": ZERO, "gcuctl": NULL}


def test_what_runs_keeps_its_card_when_the_policy_is_gone(enflame: Product, namespace: str) -> None:
    before = run(enflame, namespace, "user", PART)
    enflame.delete("default")
    assert look(enflame, namespace, "user") == before
    assert restart(enflame, namespace, "user") == before


def test_cards_of_nvidia_come_by_their_uuid_and_the_image_adds_none(nvidia: Product, namespace: str) -> None:
    first = run(nvidia, namespace, "first", WHOLE)
    second = run(nvidia, namespace, "second", PART)
    assert [seen.variables("GPUSHARE_CARD", "NVIDIA_VISIBLE_DEVICES") for seen in (first, second)] == [
        [UUIDS[0], "void"],
        [UUIDS[1], "void"],
    ]
    assert (first.devices, second.devices) == (
        {"nvidia0": NULL, "nvidiactl": NULL},
        {"nvidia1": NULL, "nvidiactl": NULL},
    )
    assert {"ro", "nosuid", "nodev"} <= set(first.mounts["/usr/lib/libcuda.so.615.71.09"].split(","))
    hook = json.loads(nvidia.cluster.node_path(NODE, DRIVER).joinpath("hook").read_text())
    assert hook["status"] == "creating", "the toolkit's hooks run before the container does"
    assert restart(nvidia, namespace, "second") == second
