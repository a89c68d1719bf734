"""Wherever programs write for people, text from outside is escaped."""

import asyncio
import io
import json
import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

import grpc
import pytest
from aiohttp import ClientSession
from aiohttp.test_utils import TestServer
from prometheus_client import CollectorRegistry
from tests.fakes.api_server import PODS, SHARE_NODES, FakeApi, fake_api
from tests.fakes.extender_api import extender_api
from tests.samples.extender import share_node
from tests.samples.hidden import HIDDEN, WRITABLE, hidden_in

from gpushare_cli.decide.residue import ResidueReport
from gpushare_cli.gather.host_files import read_host_files
from gpushare_cli.gather.residue import residue_entry
from gpushare_cli.main import main as cli
from gpushare_cli.output.format import Format, document_text
from gpushare_core.api.conditions import condition_false, dated_conditions
from gpushare_core.health_server import HealthServer, text_page
from gpushare_core.kube.client import KubeClient
from gpushare_core.process.log import configure_logging
from gpushare_core.process.log_file import log_file
from gpushare_core.process.metrics import Gauge, SnapshotCollector, exposition
from gpushare_core.residue import residue
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.objects.pod_reference import PodReference
from gpushare_extender.bind.binder import Binder
from gpushare_extender.cluster.watchers import WatchHealth
from gpushare_extender.decide.preemption.events import refused
from gpushare_extender.verbs.health import HealthApi
from gpushare_extender.verbs.server import application
from gpushare_hostctl.main import main as hostctl
from gpushare_hostctl.report import Report
from gpushare_operator.main import parser
from gpushare_plugin.decide.held.pod_events import PodEvent
from gpushare_plugin.decide.held.pods import PodName
from gpushare_plugin.decide.units.errors import UnusableUnitsError
from gpushare_plugin.devices.inventory.inventory_file import InventoryError, read_inventory
from gpushare_plugin.kubelet.device_plugin import DevicePlugin
from gpushare_plugin.kubelet.kubelet_requests import KubeletRequests
from gpushare_plugin.kubelet.proto import deviceplugin_pb2 as api
from gpushare_plugin.kubelet.reservations import UnitReservations

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
ATTACK = f"GPU-{WRITABLE}\x1b]0;owned\x07\x1b[2J"


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def node_object() -> Any:
    """A GPUShareNode as an API server without bounds would keep it."""
    share = {"namespace": "t", "name": f"p{ATTACK}", "uid": "u", "container": f"c{ATTACK}", "units": 99}
    body = {"index": 0, "uuid": ATTACK, "memory": "16Gi", "units": 16, "allocatedUnits": 99, "pods": [share]}
    return {
        "metadata": {"name": "n1", "uid": "node-uid"},
        "spec": {"policy": "", "mode": "Memory", "memoryUnit": "1Gi"},
        "status": {"memoryUnit": "1Gi", "cards": [body]},
    }


def pod_object() -> Any:
    env = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": ATTACK}]
    limits = {"gpushare.io/memory": "1"}
    return {
        "metadata": {
            "namespace": "t",
            "name": "p",
            "uid": "u",
            "annotations": {"gpushare.io/allocation": ATTACK},
        },
        "spec": {
            "nodeName": "n1",
            "containers": [{"name": "c", "env": env, "resources": {"limits": limits}}],
        },
        "status": {"phase": "Running"},
    }


async def audited(tmp_path: Path, *options: str) -> int:
    async with fake_api() as server:
        server.put(SHARE_NODES, node_object())
        server.put(PODS, pod_object())
        named = ["--kubeconfig", str(kubeconfig(server, tmp_path))]
        return await asyncio.to_thread(cli, ["audit", *named, *options])


def kubeconfig(api: FakeApi, tmp_path: Path) -> Path:
    named = {"clusters": "cluster", "users": "user", "contexts": "context"}
    parts = {
        "cluster": {"server": api.credentials().server},
        "user": {},
        "context": {"cluster": "x", "user": "x"},
    }
    body = {kind: [{"name": "x", part: parts[part]}] for kind, part in named.items()}
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps({**body, "current-context": "x"}))
    return path


async def test_the_audit_on_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert await audited(tmp_path, "--settle", "0") == 1
    told = capsys.readouterr()
    assert hidden_in(told.out + told.err, but="\n") == set()
    assert "GPU-\\u0000\\u0001" in told.out
    assert len(told.out.splitlines()) == told.out.count("\n"), "nothing else ends a line"


async def test_the_audit_of_a_pod_that_says_very_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(globals(), "ATTACK", "\x1b[2J" * 100_000)
    assert await audited(tmp_path, "--settle", "0") == 1
    told = capsys.readouterr().out
    assert "..." in told
    assert max(len(line.encode()) for line in told.splitlines()) <= 16 * 1024


async def test_the_audit_for_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert await audited(tmp_path, "--settle", "0", "-o", "json") == 1
    told = capsys.readouterr().out
    assert hidden_in(told, but="\n") == set()
    assert ATTACK in {difference["card"] for difference in json.loads(told)["differences"]}, (
        "programs get what is there"
    )


def test_names_of_files_that_are_no_text(tmp_path: Path) -> None:
    folder = tmp_path / "etc" / "kubernetes"
    folder.mkdir(parents=True)
    (folder / "gpushare-\udc9b\x1b[2J.yaml").write_text("gpushare")
    found = residue([], {"n1": read_host_files(tmp_path)})
    assert found
    report = ResidueReport(residue=[*map(residue_entry, found)], looked=[])
    for chosen in (Format.JSON, Format.YAML):
        assert hidden_in(document_text(report, chosen), but="\n") == set()


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["audit", f"--{ATTACK}"], id="no option"),
        pytest.param(["audit", "--settle", ATTACK], id="no number"),
        pytest.param(["audit", "--kubeconfig", f"/{WRITABLE[1:]}"], id="no such file"),
    ],
)
def test_what_people_have_typed(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with suppress(SystemExit):
        cli(arguments)
    told = capsys.readouterr()
    assert told.err
    assert hidden_in(told.out + told.err, but="\n") == set()


def test_the_command_line_of_every_program(capsys: pytest.CaptureFixture[str]) -> None:
    for program in (parser().parse_args, hostctl):
        with pytest.raises(SystemExit):
            program([f"--{ATTACK}"])
        assert hidden_in(capsys.readouterr().err, but="\n") == set()


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_logs(stream: type[io.StringIO]) -> None:
    written = stream()
    configure_logging("info", stream=written)
    try:
        raise ValueError(ATTACK)
    except ValueError:
        logging.getLogger("test").exception("it says %s", HIDDEN, extra={"pod": f"t/{HIDDEN}"})
    assert hidden_in(written.getvalue(), but="\n") == set()
    assert written.getvalue().count("ValueError: GPU-\\") == 1


def test_an_error_that_ends_the_process() -> None:
    written = Terminal()
    configure_logging("info", stream=written)
    sys.excepthook(ValueError, ValueError(ATTACK), None)
    assert "GPU-\\u0000" in written.getvalue()
    assert hidden_in(written.getvalue(), but="\n") == set()


def test_an_error_that_ends_a_thread(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> NoReturn:
        raise ValueError(ATTACK)

    written = Terminal()
    configure_logging("info", stream=written)
    thread = threading.Thread(target=fail, name="cards")
    thread.start()
    thread.join()
    assert "an error ends the thread cards" in written.getvalue()
    assert "GPU-\\u0000" in written.getvalue()
    assert hidden_in(written.getvalue(), but="\n") == set()
    assert capsys.readouterr().err == ""


def test_the_log_file_of_a_host(tmp_path: Path) -> None:
    configure_logging("info", stream=io.StringIO())
    with log_file(tmp_path / "plugin.log"):
        logging.getLogger("test").warning("it says %s", HIDDEN)
    assert hidden_in((tmp_path / "plugin.log").read_text(), but="\n") == set()


def test_conditions() -> None:
    states = [condition_false("Ready", "Broken", f"{ATTACK}{'é' * 40_000}")]
    (dated,) = dated_conditions(states, before=[], generation=1, now=NOW)
    assert hidden_in(dated.message) == set()
    assert len(dated.message.encode()) <= 32768


def test_events() -> None:
    pod = PodReference("t", "p", "u")
    notes = [
        PodEvent(pod=PodName("t", "p"), uid="u", reason="Sick", note=ATTACK + "é" * 2000).to_json("n1", NOW),
        refused(pod, pod, why=ATTACK + "é" * 2000).to_json(NOW),
    ]
    for event in notes:
        assert hidden_in(event["note"]) == set()
        assert len(event["note"].encode()) <= 1024


async def test_what_the_extender_answers() -> None:
    async with fake_api() as fake, KubeClient(fake.credentials()) as client:
        ledger = Ledger()
        ledger.replace_share_nodes([share_node("n1")])
        watches = (WatchHealth("pods", lambda: 0.0, listed=True),)
        extender = extender_api(Binder(client, ledger, _permitted), HealthApi(watches))
        async with TestServer(application(extender)) as server, ClientSession() as session:
            for method, path, body in _calls():
                async with session.request(method, server.make_url(path), json=body) as answer:
                    told = await answer.json()
                    texts = [text for text in _texts(told) if text != ATTACK]
                    assert hidden_in("".join(texts)) == set(), path


async def _permitted() -> int:
    return 1


def _calls() -> Iterator[tuple[str, str, Any]]:
    limits = {"resources": {"limits": {"gpushare.io/memory": "99"}}}
    pod = {"metadata": {"namespace": "t", "name": ATTACK, "uid": "u"}, "spec": {"containers": [limits]}}
    yield "POST", "/gpushare/filter", {"Pod": pod, "NodeNames": ["n1", ATTACK]}
    yield "POST", "/gpushare/filter", {"Pod": {"metadata": {ATTACK: 1}, "spec": ATTACK}}
    yield "POST", "/gpushare/preempt", {"Pod": {"metadata": ATTACK}}
    yield "POST", "/gpushare/bind", {"PodName": ATTACK, "PodNamespace": "t", "PodUID": "u", "Node": ATTACK}
    yield "GET", "/gpushare/inspect/%1B%5B2J%C2%9B", None
    yield "GET", "/gpushare-scheduler/inspect/%1B%5B2J%E2%80%AE", None


def _texts(told: Any) -> Iterator[str]:
    if isinstance(told, str):
        yield told
    elif isinstance(told, dict):
        for part in told.values():
            yield from _texts(part)
    elif isinstance(told, list):
        for part in told:
            yield from _texts(part)


class RefusedError(Exception):
    """The call was aborted."""


class Call:
    """A call of the kubelet's that is to be refused."""

    async def abort(self, _: grpc.StatusCode, details: str) -> NoReturn:
        raise RefusedError(details)


class Allocator:
    async def allocate(self, _: Any) -> None:
        raise UnusableUnitsError(f"{ATTACK}{'é' * 2000}")

    prefer = allocate


async def test_what_the_kubelet_is_refused() -> None:
    """It puts that into the status of the pod."""
    plugin = DevicePlugin(Allocator(), None, calls=KubeletRequests(UnitReservations(lambda: 0.0)))  # type: ignore[arg-type]
    asked = api.AllocateRequest(container_requests=[api.ContainerAllocateRequest(devices_ids=["x"])])
    with pytest.raises(RefusedError) as refusal:
        await plugin.allocate(asked, Call())  # type: ignore[arg-type]
    assert hidden_in(str(refusal.value)) == set()
    assert len(str(refusal.value).encode()) <= 1024


async def test_the_health_port_of_a_plugin() -> None:
    server = HealthServer(0, {"/healthz": text_page(lambda: ATTACK)}, host="127.0.0.1")
    async with server, ClientSession(f"http://127.0.0.1:{server.port}") as session:
        answer = await session.get("/healthz")
        assert hidden_in(await answer.text()) == set()


def test_metrics() -> None:
    """What a driver calls a card is a label."""
    models = Gauge("models", "Of cards.", ("model",))
    registry = CollectorRegistry()
    registry.register(
        SnapshotCollector([models], lambda: [models.at(1, ATTACK), models.at(1, "Zürich 华为")])
    )
    page = exposition(registry).decode()
    assert hidden_in(page, but="\n") == set()
    assert "GPU-\\\\u0000" in page
    assert 'model="Zürich 华为"' in page


def test_what_is_wrong_with_an_inventory_says_what_it_has() -> None:
    """It becomes a condition, which shows it as an escape."""
    with pytest.raises(InventoryError) as refusal:
        read_inventory(b'cards: [{uuid: a, memory: "\\e[2J"}]')
    states = [condition_false("CardsHealthy", "InventoryInvalid", str(refusal.value))]
    (dated,) = dated_conditions(states, before=[], generation=1, now=NOW)
    assert hidden_in(dated.message) == set()
    assert "[2J" in dated.message


def test_what_hostctl_prints_and_leaves_for_the_operator(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Report("Failed", ATTACK * 100).publish(tmp_path / "termination-log")
    told = capsys.readouterr().out
    assert hidden_in(told, but="\n") == set()
    left = (tmp_path / "termination-log").read_text()
    assert hidden_in(left) == set()
    assert len(left) <= 4096


def test_what_hostctl_says_of_the_configuration_of_a_user_s_scheduler(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The configuration itself is a file, and goes out byte by byte."""
    present = tmp_path / "present.yaml"
    present.write_text('apiVersion: "\\e[2J\\u202e"\nkind: KubeSchedulerConfiguration\n')
    extender = ["--extender-url", "https://127.0.0.1:1/x", "--managed-resource", "gpushare.io/memory"]
    assert hostctl(["render", *extender, "--config", str(present), "--target", "/\x1b[2J\u202e"]) == 2
    told = capsys.readouterr()
    assert told.err
    assert hidden_in(told.out + told.err, but="\n") == set()
    present.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
    assert hostctl(["render", *extender, "--config", str(present), "--target", "/\x1b[2J\u202e"]) == 0
    assert hidden_in(capsys.readouterr().err, but="\n") == set()
