"""An inventory on a node: followed, however it is changed, and never the end of anything."""

import asyncio
import gc
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.fakes.kubelet import AdmissionError
from tests.fakes.leaping_time import leap
from tests.fakes.patience import PATIENCE
from tests.fakes.plugin_node import Node
from tests.samples.inventory import card_lines
from tests.samples.plugin import container, pod_json

from gpushare_plugin.devices.card import Reading
from gpushare_plugin.devices.inventory.card_checks import REWORDED, CardChecks
from gpushare_plugin.devices.inventory.health_command import HealthAnswer
from gpushare_plugin.devices.inventory.inventory_file import HealthCommand
from gpushare_plugin.devices.inventory.source import InventorySource

TWO = card_lines("GCU-0") + card_lines("GCU-1").removeprefix("cards:\n")
HEALTH = "health: {command: [/bin/check, '{uuid}'], periodSeconds: 5, timeoutSeconds: 2}\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "inventory.yaml"
    path.write_text(TWO)
    return path


class Vendor:
    """Answers as the program that an inventory names, at a time that the test sets."""

    def __init__(self) -> None:
        self.answers: dict[str, HealthAnswer] = {}
        self.asked: list[str] = []
        self.time = 0.0

    def ask(self, arguments: Sequence[str], timeout: float) -> HealthAnswer:
        assert timeout == 2.0
        self.asked.append(arguments[1])
        return self.answers.get(arguments[1], HealthAnswer())

    @property
    def checks(self) -> CardChecks:
        return CardChecks(self.ask, lambda: self.time)


def problem(reading: Reading) -> str:
    return reading.problem.reason if reading.problem else ""


async def read_in_vain(
    source: InventorySource, reached: threading.Semaphore | None = None, *, times: int = 1
) -> Reading:
    """Reads until the deadline has passed, once ``reached`` was released ``times`` times: then all hang that
    will."""
    reading = asyncio.create_task(source.read())
    if reached:
        for _ in range(times):
            assert await asyncio.to_thread(reached.acquire, timeout=30)
    while not reading.done():
        leap(60)
        await asyncio.sleep(0.01)
    return reading.result()


def uuids(reading: Reading) -> list[str]:
    return [card.uuid for card in reading.cards]


def are_healthy(reading: Reading) -> bool:
    return all(card.healthy for card in reading.cards)


async def until(what: str, source: InventorySource, holds: Callable[[Reading], bool]) -> Reading:
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while not holds(reading := await source.read()):
        assert asyncio.get_running_loop().time() < deadline, f"waited {PATIENCE:g} s for {what}"
        await asyncio.sleep(0.01)
    return reading


def in_place(path: Path, text: str) -> None:
    path.write_text(text)


def by_rename(path: Path, text: str) -> None:
    other = path.with_name("new")
    other.write_text(text)
    other.rename(path)


def as_a_config_map(path: Path, text: str) -> None:
    """A link to a link to a folder, which is exchanged."""
    folder = path.with_name(f"..{len(text)}")
    folder.mkdir(exist_ok=True)
    (folder / path.name).write_text(text)
    data, link = path.with_name("..data"), path.with_name("..data_tmp")
    link.symlink_to(folder.name)
    link.rename(data)
    if not path.is_symlink():
        path.unlink()
        path.symlink_to(f"..data/{path.name}")


@pytest.mark.parametrize("write", [in_place, by_rename, as_a_config_map])
async def test_a_changed_file_is_followed(path: Path, write: object) -> None:
    assert callable(write)
    source = InventorySource(path)
    assert uuids(await source.read()) == ["GCU-0", "GCU-1"]
    write(path, card_lines("GCU-0"))
    assert uuids(await source.read()) == ["GCU-0"]
    write(path, TWO)
    assert uuids(await source.read()) == ["GCU-0", "GCU-1"]


def remove(path: Path) -> None:
    path.unlink()


def make_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def make_loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


@pytest.mark.parametrize(
    ("spoil", "reason", "expected"),
    [
        pytest.param(remove, "InventoryMissing", "put its inventory there", id="gone"),
        pytest.param(make_pipe, "InventoryUnreadable", "it is no file", id="pipe"),
        pytest.param(make_folder, "InventoryUnreadable", "cannot be read", id="folder"),
        pytest.param(make_loop, "InventoryUnreadable", "symbolic links", id="loop of links"),
        pytest.param(lambda path: path.chmod(0o666), "InventoryUnsafe", "chmod 644", id="anybody's"),
        pytest.param(
            lambda path: path.write_bytes(b"\xff"), "InventoryInvalid", "line 1: not UTF-8", id="bytes"
        ),
        pytest.param(lambda path: path.write_bytes(b"a" * 2**24), "InventoryInvalid", "256 KiB", id="huge"),
        pytest.param(lambda path: path.write_text(""), "InventoryInvalid", "line 1", id="empty"),
    ],
)
async def test_a_file_that_is_none_is_said_and_the_last_good_one_stays(
    path: Path, spoil: object, reason: str, expected: str
) -> None:
    assert callable(spoil)
    source = InventorySource(path)
    before = await source.read()
    spoil(path)
    reading = await source.read()
    assert (problem(reading), reading.cards) == (reason, before.cards)
    assert reading.problem
    assert expected in reading.problem.message
    assert reading.problem.message.endswith("the cards that were listed last stay in force")
    fresh = await InventorySource(path).read()
    assert (problem(fresh), fresh.cards) == (reason, ())
    assert fresh.unknown


async def test_a_disk_that_does_not_answer_holds_up_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = InventorySource(path, deadline=60)
    before = await source.read()
    reached, released = threading.Semaphore(0), threading.Event()
    real_open = os.open

    def stuck(*arguments: object) -> int:
        reached.release()
        assert released.wait(300), "waited 300 s for the end of the test"
        return real_open(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("gpushare_plugin.devices.inventory.source.os.open", stuck)
    reading = await read_in_vain(source, reached)
    assert (problem(reading), reading.cards) == ("InventoryUnreadable", before.cards)
    assert problem(await source.read()) == "InventoryUnreadable", "asked once"
    monkeypatch.undo()
    released.set()
    reading = await until("an answer", source, lambda reading: not reading.problem)
    assert reading.cards == before.cards


async def test_cards_are_asked_for_their_health_when_it_is_due(path: Path) -> None:
    vendor = Vendor()
    in_place(path, TWO + HEALTH)
    source = InventorySource(path, checks=vendor.checks)
    assert all(card.healthy for card in (await source.read()).cards)
    assert sorted(vendor.asked) == ["GCU-0", "GCU-1"]
    vendor.answers["GCU-1"] = HealthAnswer("too hot")
    await source.read()
    assert len(vendor.asked) == 2, "the answer holds until the next is due"
    vendor.time = 5.0
    reading = await until("the second card", source, lambda reading: not reading.cards[1].healthy)
    assert (reading.cards[0].healthy, reading.cards[1].reason) == (True, "too hot")
    vendor.answers.clear()
    vendor.time = 10.0
    await until("both", source, are_healthy)
    assert sorted(vendor.asked) == ["GCU-0"] * 3 + ["GCU-1"] * 3


async def test_an_answer_counts_although_the_next_is_due_by_then(path: Path) -> None:
    vendor = Vendor()
    in_place(path, TWO + HEALTH)
    source = InventorySource(path, checks=vendor.checks)
    await source.read()
    vendor.answers["GCU-1"] = HealthAnswer("too hot")

    def is_seen(reading: Reading) -> bool:
        vendor.time += 10.0
        return not reading.cards[1].healthy

    await until("the second card, at rounds longer than the period", source, is_seen)


async def test_a_health_command_that_cannot_be_run_says_nothing_of_the_cards(path: Path) -> None:
    in_place(path, TWO + HEALTH)
    reading = await InventorySource(path).read()
    assert problem(reading) == "HealthCommandUnusable"
    assert reading.problem
    assert "/bin/check: No such file or directory" in reading.problem.message
    assert all(card.healthy for card in reading.cards)
    in_place(path, TWO)
    assert problem(await InventorySource(path).read()) == ""


async def test_cards_whose_health_command_hangs_are_not_healthy(path: Path) -> None:
    vendor = Vendor()
    reached, released = threading.Semaphore(0), threading.Event()

    def hang(_: Sequence[str], __: float) -> HealthAnswer:
        reached.release()
        assert released.wait(300), "waited 300 s for the end of the test"
        return HealthAnswer()

    in_place(path, TWO + HEALTH)
    source = InventorySource(path, checks=CardChecks(hang, lambda: vendor.time), deadline=60)
    assert {card.reason for card in (await read_in_vain(source, reached, times=2)).cards} == {
        "its health command has not answered yet"
    }
    vendor.time = 8.0
    assert "did not end although it was killed" in (await read_in_vain(source)).cards[0].reason
    released.set()
    await until("healthy cards", source, are_healthy)


async def test_rounds_while_a_health_command_hangs_keep_nothing(path: Path) -> None:
    reached, released = threading.Semaphore(0), threading.Event()

    def hang(_: Sequence[str], __: float) -> HealthAnswer:
        reached.release()
        assert released.wait(300), "waited 300 s for the end of the test"
        return HealthAnswer()

    in_place(path, TWO + HEALTH)
    source = InventorySource(path, checks=(checks := CardChecks(hang, lambda: 0.0)), deadline=60)
    cards = (await read_in_vain(source, reached, times=2)).cards
    gc.collect()
    before = sum(isinstance(found, asyncio.Future) for found in gc.get_objects())
    command = HealthCommand(arguments=("/bin/check", "{uuid}"), period=5.0, timeout=2.0)
    for _ in range(50):
        await checks.follow(command, cards, timeout=0.001)
    gc.collect()
    kept = sum(isinstance(found, asyncio.Future) for found in gc.get_objects()) - before
    released.set()
    assert kept <= 4, f"{kept} futures more after 50 rounds"


async def test_what_a_health_command_says_of_a_sick_card_changes_the_status_rarely(path: Path) -> None:
    vendor = Vendor()
    in_place(path, TWO + HEALTH)
    source = InventorySource(path, checks=vendor.checks)
    vendor.answers["GCU-1"] = HealthAnswer("10:00:00 too hot")
    said = {(await source.read()).cards[1].reason}
    for second in range(5, REWORDED, 5):
        vendor.time = float(second)
        vendor.answers["GCU-1"] = HealthAnswer(f"10:00:{second} too hot")
        asked = len(vendor.asked)
        await until("the answer", source, lambda _, asked=asked: len(vendor.asked) >= asked + 2)  # type: ignore[misc]
        said.add((await source.read()).cards[1].reason)
    assert said == {"10:00:00 too hot"}
    vendor.time = REWORDED + 5.0
    await until("other words", source, lambda reading: reading.cards[1].reason not in said)
    vendor.time, vendor.answers["GCU-1"] = REWORDED + 10.0, HealthAnswer()
    await until("health at once", source, are_healthy)


async def test_a_slow_health_command_makes_no_card_sick_at_the_start_of_the_plugin(
    node: Node, path: Path
) -> None:
    released = threading.Event()

    def slow(_: Sequence[str], __: float) -> HealthAnswer:
        assert released.wait(300), "waited 300 s for the end of the test"
        return HealthAnswer()

    in_place(path, TWO + HEALTH)
    source = InventorySource(path, checks=CardChecks(slow), deadline=0.1)
    node.open_source = lambda _: source
    node.share(devices={"source": "Inventory"})
    await node.until("the cards", lambda: node.condition("CardsHealthy") == ("False", "CardsUnhealthy"))
    assert "its health command has not answered yet" in node.message("CardsHealthy")
    assert node.share_node.status.faults == []
    released.set()
    assert node.agent
    node.agent.state.changed.set()
    await node.until("healthy cards", lambda: node.condition("CardsHealthy") == ("True", "AllHealthy"))
    assert node.share_node.status.faults == []


async def test_by_cdi_the_kubelet_gets_qualified_names_from_the_next_pod_on(node: Node) -> None:
    before = await node.run_pod(pod_json("a", container(units=4)))
    assert not before.answers["main"].cdi_devices
    devices = node.share_node.spec.devices.to_json()
    node.share(devices={**devices, "injection": "CDI", "cdiKind": "example.com/card"})
    await node.until("the change", lambda: bool(node.agent and node.agent.state.devices.injection == "CDI"))
    after = await node.run_pod(pod_json("b", container(units=4)))
    variables = after.variables["main"]
    (name,) = after.answers["main"].cdi_devices
    assert name.name == f"example.com/card={variables['GPUSHARE_CARD']}"
    assert variables["NVIDIA_VISIBLE_DEVICES"] == "void"
    await node.until("both", lambda: {"a", "b"} <= node.on_cards().keys())


async def test_a_node_serves_its_inventory_and_a_broken_one_harms_no_pod(node: Node, path: Path) -> None:
    mount = "{hostPath: /opt/gcu, containerPath: /usr/gcu}"
    visible = "{variable: GCU_VISIBLE}"
    extra = f"container: {{deviceNodes: [/dev/gcuctl], mounts: [{mount}], visibleCards: {visible}}}\n"
    in_place(path, TWO + extra)
    source = InventorySource(path)
    node.open_source = lambda _: source
    node.share(devices={"source": "Inventory"})
    await node.until("the cards", lambda: "GCU-0" in [card.uuid for card in node.share_node.status.cards])
    admitted = await node.run_pod(pod_json("a", container(units=4)))
    assert admitted.variables["main"]["GCU_VISIBLE"] == admitted.variables["main"]["GPUSHARE_CARD"]
    (device,) = admitted.answers["main"].devices
    assert (device.host_path, device.container_path, device.permissions) == (*["/dev/gcuctl"] * 2, "rw")
    (mounted,) = admitted.answers["main"].mounts
    assert (mounted.host_path, mounted.container_path, mounted.read_only) == ("/opt/gcu", "/usr/gcu", True)
    await node.until("the pod", lambda: "a" in node.on_cards())
    before = node.on_cards()

    in_place(path, TWO + "cards: []\n")
    assert node.agent
    node.agent.state.changed.set()
    await node.until("the reason", lambda: node.condition("CardsHealthy") == ("Unknown", "InventoryInvalid"))
    assert "line 6: cards is there twice" in node.message("CardsHealthy")
    await node.run_pod(pod_json("b", container(units=4)))
    await node.until("both", lambda: {"a", "b"} <= node.on_cards().keys())
    assert node.on_cards()["a"] == before["a"]

    held = next(iter(before["a"]))
    other = next(uuid for uuid in ("GCU-0", "GCU-1") if uuid != held)
    in_place(path, card_lines(other))
    node.agent.state.changed.set()
    await node.until("the card gone", lambda: node.condition("CardsHealthy") == ("False", "CardsUnhealthy"))
    assert node.on_cards()["a"] == before["a"], "a pod's card stays booked"
    with pytest.raises(AdmissionError):
        await node.run_pod(pod_json("c", container(units=17)))
