"""Containers are given the hook, live; what they were given is inspected, and its files go with them."""

import asyncio
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.component.plugin.test_lost_assignments import forgetful_restart
from tests.component.plugin.test_modes import SLICE
from tests.fakes.api_server import EVENTS, LEASES, PODS, SHARE_NODES
from tests.fakes.kubelet import AdmissionError, Admitted
from tests.fakes.plugin_node import Node
from tests.samples.plugin import NODE, container, name_of, pod_json

from gpushare_core.api.names import API_VERSION, POLICY_KIND, SIMULATED_LOAD_ANNOTATION
from gpushare_core.api.plugin_heartbeat import IsolationFiles, read_isolation_files
from gpushare_core.scheduling.objects.share_node import read_share_node
from gpushare_core.text.json_object import Json
from gpushare_plugin import agent
from gpushare_plugin.isolation import keeper

GIB = 2**30
POLICY = {"apiVersion": API_VERSION, "kind": POLICY_KIND, "name": "default", "uid": "uid-policy"}
LIBRARY = b"\x7fELF library"


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent, "PERIOD", 0.2)
    monkeypatch.setattr(keeper, "GRACE", 1.0)


@pytest.fixture
def hook_node(idle_node: Node) -> Node:
    """A node whose plugin can give the hook; it does not run yet."""
    idle_node.hook_library.parent.mkdir(parents=True)
    idle_node.hook_library.write_bytes(LIBRARY)
    idle_node.isolation_folder = idle_node.kubelet.directory / "isolation"
    return idle_node


async def start(node: Node, memory: str = "Hook", **isolation: object) -> None:
    share(node, memory, **isolation)
    await node.start_plugin()
    await node.until_registered()


def share(node: Node, memory: str, **isolation: object) -> None:
    spec: Json = {} if memory == "None" else {"isolation": {"memory": memory, **isolation}}
    node.share(**spec)
    share_node = node.api.objects[SHARE_NODES]["", NODE]
    share_node["metadata"]["ownerReferences"] = [POLICY]
    node.api.put(SHARE_NODES, share_node)


async def admit(node: Node, name: str, units: int = 4) -> Admitted:
    return await node.run_pod(pod_json(name, container(units=units)))


def mounts(admitted: Admitted) -> dict[str, Path]:
    found = admitted.answers["main"].mounts
    assert all(mount.read_only for mount in found)
    return {mount.container_path: Path(mount.host_path) for mount in found}


def limits_files(node: Node) -> list[Path]:
    assert node.isolation_folder
    return sorted((node.isolation_folder / "limits").glob("*"))


def given(node: Node) -> dict[str, str]:
    """Pod -> what its container was given, by the status."""
    return {share.name: share.isolation for card in node.share_node.status.cards for share in card.pods}


def in_lease(node: Node) -> IsolationFiles | None:
    return read_isolation_files(lease(node))


def lease(node: Node) -> Json:
    found: Json = node.api.objects[LEASES].get(("", f"plugin.{NODE}"), {})
    return found


def owners(node: Node) -> list[str]:
    return [owner["kind"] for owner in lease(node).get("metadata", {}).get("ownerReferences", [])]


def reasons(node: Node) -> list[str]:
    return [event["reason"] for event in node.api.objects[EVENTS].values()]


def healthy_units(node: Node) -> int:
    return list(node.kubelet.devices.values()).count("Healthy")


def is_gone(path: Path | None) -> Callable[[], bool]:
    return lambda: path is not None and not path.exists()


async def test_a_container_gets_the_hook_and_its_limits(hook_node: Node) -> None:
    await start(hook_node, contextMemory="500Mi")
    admitted = await admit(hook_node, "a")
    found = mounts(admitted)
    assert [*found] == ["/etc/ld.so.preload", "/opt/gpushare/lib/libgpushare-cuda.so", "/etc/gpushare/limits"]
    preload, library, limits = found.values()
    uuid = admitted.variables["main"]["GPUSHARE_CARD"]
    assert admitted.variables["main"]["GPUSHARE_ISOLATION"] == "Hook"
    assert preload.read_bytes() == b"/opt/gpushare/lib/libgpushare-cuda.so\n"
    assert library.read_bytes() == LIBRARY
    text = f"container {limits.name}\ncontext {500 * 2**20}\n{uuid} {4 * GIB}\n"
    assert limits.read_text() == text
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (library, preload, limits, limits.parent)]
    assert modes == [0o755, 0o644, 0o644, 0o755]
    await hook_node.until("what it was given", lambda: given(hook_node) == {"a": "Hook"})
    assert hook_node.condition("IsolationReady") == ("True", "Hook")
    await hook_node.until("the look", lambda: hook_node.condition("IsolationInForce") == ("True", "InForce"))
    assert hook_node.share_node.status.isolation == "Hook"


async def test_without_isolation_nothing_is_given_and_no_condition_is_there(hook_node: Node) -> None:
    await start(hook_node, "None")
    admitted = await admit(hook_node, "a")
    assert not mounts(admitted)
    await hook_node.until("the pod", lambda: given(hook_node) == {"a": ""})
    assert hook_node.share_node.status.isolation == "None"
    assert hook_node.condition("IsolationReady") == hook_node.condition("IsolationInForce") == ("", "")
    assert is_gone(hook_node.isolation_folder)()


async def test_a_repeated_allocate_gives_the_same_file(hook_node: Node) -> None:
    await start(hook_node)
    admitted = await admit(hook_node, "a")
    before = {path: path.stat().st_ino for path in mounts(admitted).values()}
    units = admitted.held["main"]
    await hook_node.until("what it was given", lambda: given(hook_node) == {"a": "Hook"})
    hook_node.kubelet.forget_units(name_of("a"))
    await hook_node.kubelet.allocate("gpushare.io/memory", units)
    assert {path: path.stat().st_ino for path in mounts(admitted).values()} == before
    assert len(limits_files(hook_node)) == 1


async def test_a_change_of_the_policy_holds_for_new_containers(hook_node: Node) -> None:
    await start(hook_node, "None")
    await admit(hook_node, "before")
    share(hook_node, "Hook")
    await hook_node.until("the hook", lambda: hook_node.condition("IsolationReady") == ("True", "Hook"))
    await admit(hook_node, "with")
    share(hook_node, "None")
    await hook_node.until("no isolation", lambda: hook_node.share_node.status.isolation == "None")
    await admit(hook_node, "after")
    expected = {"before": "", "with": "Hook", "after": ""}
    await hook_node.until("what each was given", lambda: given(hook_node) == expected)
    await hook_node.restart_plugin()
    await hook_node.until_registered()
    await hook_node.until("the same", lambda: given(hook_node) == expected)
    assert len(limits_files(hook_node)) == 1


async def test_a_node_without_the_library_takes_no_new_pod_and_keeps_those_that_run(hook_node: Node) -> None:
    await start(hook_node)
    await admit(hook_node, "a")
    await hook_node.until("what it was given", lambda: given(hook_node) == {"a": "Hook"})
    hook_node.hook_library.unlink()
    await hook_node.until(
        "the lack", lambda: hook_node.condition("IsolationReady") == ("False", "LibraryMissing")
    )
    assert "use an image of this version" in hook_node.message("IsolationReady")
    assert hook_node.share_node.status.isolation == "Unavailable"
    assert hook_node.condition("IsolationInForce") == ("True", "InForce")  # its own copy is on the node
    read = read_share_node(msgspec.json.encode(hook_node.api.objects[SHARE_NODES]["", NODE]))
    assert read.closed_reason.startswith("node(s) without isolation: isolation Hook is not possible here")
    await hook_node.kubelet.until("the units of the pod alone", lambda _: healthy_units(hook_node) == 4)
    with pytest.raises(AdmissionError):
        await admit(hook_node, "b")
    hook_node.kubelet.forget_units(name_of("a"))
    await hook_node.kubelet.restart_container(name_of("a"), "main", 4)
    hook_node.hook_library.write_bytes(LIBRARY)
    await hook_node.until("the library", lambda: hook_node.condition("IsolationReady") == ("True", "Hook"))
    await hook_node.kubelet.until("all units", lambda _: healthy_units(hook_node) == 32)


async def test_a_plugin_without_a_folder_says_so(idle_node: Node) -> None:
    share(idle_node, "Hook")
    await idle_node.start_plugin()
    await idle_node.until("the lack", lambda: idle_node.condition("IsolationReady") == ("False", "NoFolder"))


async def test_a_pod_is_refused_with_a_reason_where_its_limits_cannot_be_written(hook_node: Node) -> None:
    await start(hook_node)
    assert hook_node.isolation_folder
    (hook_node.isolation_folder / "limits").rmdir()
    (hook_node.isolation_folder / "limits").write_text("in the way")
    with pytest.raises(AdmissionError, match=r"create the pod again"):
        await admit(hook_node, "a")


async def test_of_two_containers_whose_files_are_written_at_once_one_gets_the_units(hook_node: Node) -> None:
    await start(hook_node)
    units = [*hook_node.kubelet.devices][:4]
    both = (hook_node.kubelet.allocate("gpushare.io/memory", units) for _ in range(2))
    refused = [answer for answer in await asyncio.gather(*both, return_exceptions=True) if answer]
    assert "to another container at this moment" in str(refused)
    assert len(refused) == 1


async def test_a_missing_source_of_a_mount_is_put_back_before_the_answer(hook_node: Node) -> None:
    await start(hook_node)
    assert hook_node.isolation_folder
    library = hook_node.isolation_folder / "libgpushare-cuda.so"
    library.unlink()
    library.mkdir()  # as containerd does for a mount whose source is missing
    admitted = await admit(hook_node, "a")
    assert mounts(admitted)["/opt/gpushare/lib/libgpushare-cuda.so"].read_bytes() == LIBRARY


@pytest.mark.parametrize("content", [None, b"container 0\n", b""])
async def test_a_file_that_is_not_as_it_was_written_is_told(hook_node: Node, content: bytes | None) -> None:
    await start(hook_node)
    admitted = await admit(hook_node, "a")
    limits = mounts(admitted)["/etc/gpushare/limits"]
    limits.unlink()
    if content is not None:
        limits.write_bytes(content)
    await hook_node.until(
        "the lack", lambda: hook_node.condition("IsolationInForce") == ("False", "IsolationNotInForce")
    )
    assert "container main of pod default/a" in hook_node.message("IsolationInForce")
    await hook_node.until("the Event", lambda: reasons(hook_node) == ["IsolationNotInForce"])


async def test_files_go_with_the_container_and_the_library_with_the_policy(hook_node: Node) -> None:
    await start(hook_node)
    await hook_node.until("the library", lambda: in_lease(hook_node) == IsolationFiles())
    await admit(hook_node, "a")
    await admit(hook_node, "b")
    await hook_node.until(
        "the pods", lambda: in_lease(hook_node) == IsolationFiles(pods=("default/a", "default/b"))
    )
    hook_node.end_pod("a")
    await hook_node.until("one file less", lambda: len(limits_files(hook_node)) == 1)
    share(hook_node, "None")
    await hook_node.until("no isolation", lambda: hook_node.share_node.status.isolation == "None")
    assert in_lease(hook_node) == IsolationFiles(pods=("default/b",))
    hook_node.end_pod("b")
    await hook_node.until("an empty node", is_gone(hook_node.isolation_folder))
    await hook_node.until("an empty Lease", lambda: in_lease(hook_node) is None)


async def test_the_lease_outlives_the_share_node_while_files_are_there(hook_node: Node) -> None:
    await start(hook_node)
    await admit(hook_node, "a")
    expected = IsolationFiles(pods=("default/a",))
    await hook_node.until("the pod", lambda: in_lease(hook_node) == expected)
    assert owners(hook_node) == [POLICY_KIND]
    hook_node.api.delete(SHARE_NODES, NODE)
    await hook_node.until("nothing is offered", lambda: healthy_units(hook_node) == 0)
    await hook_node.stop_plugin()
    renewed = lease(hook_node)["spec"]
    await hook_node.start_plugin()
    await hook_node.until("a renewal", lambda: lease(hook_node)["spec"] != renewed)
    assert (in_lease(hook_node), owners(hook_node)) == (expected, [POLICY_KIND])
    hook_node.end_pod("a")
    await hook_node.until("an empty node", is_gone(hook_node.isolation_folder))
    await hook_node.until("an empty Lease", lambda: in_lease(hook_node) is None)


def load(node: Node, name: str, text: str) -> None:
    body = node.api.pod(name)
    body["metadata"].setdefault("annotations", {})[SIMULATED_LOAD_ANNOTATION] = text
    node.api.put(PODS, body)


def exceeding(node: Node) -> set[str]:
    """Pods that may be evicted when that has lasted."""
    shares = [share for card in node.share_node.status.cards for share in card.pods]
    return {share.name for share in shares if share.exceeded_since}


async def measured(node: Node, **spec: Any) -> None:
    """Waits until the spec is in force, with what containers use."""
    isolation = {"memory": "Hook", "contextMemory": "2Gi", "onExcess": "Evict"}
    asked: Json = {"measurement": {"scope": "Containers"}, "isolation": isolation, **spec}
    node.share(**asked)
    shown = node.api.objects[SHARE_NODES]["", NODE]
    await node.until(
        "the spec", lambda: node.share_node.status.observed_generation == shown["metadata"]["generation"]
    )


async def rounds(node: Node, count: int = 5) -> None:
    """Lets the plugin look a few times more."""
    before = node.given_back
    await node.until("a few rounds", lambda: node.given_back > before + count)


async def test_what_the_hook_cannot_count_is_no_excess_whatever_the_policy_says_by_now(
    hook_node: Node,
) -> None:
    await start(hook_node, contextMemory="2Gi")
    await measured(hook_node)
    await admit(hook_node, "a")
    load(hook_node, "a", "main=5Gi")
    isolation = {"memory": "None", "contextMemory": "0", "onExcess": "Evict"}
    await measured(hook_node, isolation=isolation)
    await rounds(hook_node)
    assert exceeding(hook_node) == set()
    load(hook_node, "a", "main=7Gi")
    await hook_node.until("the excess", lambda: exceeding(hook_node) == {"a"})


async def test_what_a_limit_allows_is_no_excess_when_more_is_reserved(hook_node: Node) -> None:
    isolation = {"memory": "Hook", "contextMemory": "0", "onExcess": "Evict"}
    cards: Json = {"source": "Simulated", "simulated": [{"count": 1, "memory": "16Gi"}]}
    halves: Json = {"mode": "Slices", "slicesPerCard": 2, "devices": cards, "isolation": isolation}
    await start(hook_node)
    await measured(hook_node, **halves)
    await hook_node.kubelet.until("two slices", lambda it: len(it.devices) == 2)
    await hook_node.until_registered()
    await hook_node.run_pod(pod_json("a", container(units=1, resource=SLICE)))
    load(hook_node, "a", "main=8Gi")
    await measured(hook_node, **halves, reservedMemory="2Gi")
    await rounds(hook_node)
    assert exceeding(hook_node) == set()
    load(hook_node, "a", "main=9Gi")
    await hook_node.until("the excess", lambda: exceeding(hook_node) == {"a"})


async def test_a_hooked_container_that_the_kubelet_lost_is_not_evicted_for_its_context(
    hook_node: Node,
) -> None:
    await start(hook_node, contextMemory="2Gi")
    await measured(hook_node)
    await admit(hook_node, "a")
    await hook_node.until("what it was given", lambda: given(hook_node) == {"a": "Hook"})
    await forgetful_restart(hook_node, "a")
    load(hook_node, "a", "main=5Gi")
    await rounds(hook_node)
    assert (given(hook_node), exceeding(hook_node)) == ({"a": "Hook"}, set())
    assert len(limits_files(hook_node)) == 1


async def test_a_kubelet_that_does_not_answer_loses_no_file(hook_node: Node) -> None:
    await start(hook_node)
    await admit(hook_node, "a")
    await hook_node.until("what it was given", lambda: given(hook_node) == {"a": "Hook"})
    await hook_node.kubelet.stop()
    hook_node.api.delete(PODS, "a", "default")
    hook_node.api.delete(SHARE_NODES, NODE)
    rounds = hook_node.given_back
    await hook_node.until("a few rounds", lambda: hook_node.given_back > rounds + 3)
    assert len(limits_files(hook_node)) == 1
    await hook_node.kubelet.start()
