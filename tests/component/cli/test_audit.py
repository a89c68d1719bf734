"""``kubectl gpushare audit`` against an API server and a kubelet on real sockets."""

import http.client
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.component.cli.commands import printed, run_command
from tests.fakes.api_server import PODS, SHARE_NODES, FakeApi, json_answer, status
from tests.fakes.plugin_node import Node
from tests.samples.plugin import NODE, container, pod_json

from gpushare_cli.arguments import parse
from gpushare_cli.decide.audit import AuditReport
from gpushare_cli.errors import CannotLookError
from gpushare_cli.gather.cluster import read_pods
from gpushare_cli.gather.extender import read_extender
from gpushare_cli.gather.host import read_host
from gpushare_cli.main import main
from gpushare_cli.report import ExitStatus
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.paths import POLICIES


async def run(api: FakeApi, *arguments: str) -> AuditReport:
    async with KubeClient(api.credentials()) as client:
        report = await run_command(client, "audit", *arguments)
    assert isinstance(report, AuditReport)
    return report


async def run_pod(node: Node, name: str, units: int) -> None:
    await node.run_pod(pod_json(name, container(units=units)))
    await node.until("the report", lambda: name in node.on_cards())


def local(kubelet: Path) -> list[str]:
    return ["--node", NODE, "--host-folder", str(kubelet)]


def change_status(api: FakeApi, **card: Any) -> None:
    share_node = json.loads(json.dumps(api.objects[SHARE_NODES]["", NODE]))
    share_node["status"]["cards"][0].update(card)
    api.put(SHARE_NODES, share_node)


async def test_books_that_agree_have_no_difference(node: Node, kubelet: Path) -> None:
    await run_pod(node, "a", 4)
    report = await run(node.api, *local(kubelet))
    text = printed(report, "audit")
    assert "No difference. Compared on 1 node, 1 pod: annotations, GPUShareNodes, PodResources" in text
    assert "Not compared: the extender's ledger (run it on a control-plane node, with --extender)." in text
    assert report.exit_status is ExitStatus.GOOD


@pytest.mark.parametrize(
    ("engine", "is_missed"), [("Plugin", False), ("Extender", True), ("", True)], ids=lambda given: str(given)
)
async def test_the_ledger_of_an_extender_is_missed_where_there_is_one(
    node: Node, kubelet: Path, engine: str, *, is_missed: bool
) -> None:
    placing = {"backend": "Dedicated", "engine": engine}
    policy = {"metadata": {"name": "default"}, "spec": {}, "status": placing}
    node.api.fail("GET", POLICIES, json_answer({"items": [policy], "metadata": {"resourceVersion": "1"}}))
    report = await run(node.api, *local(kubelet))
    assert report.unread == (
        ["the extender's ledger (run it on a control-plane node, with --extender)"] if is_missed else []
    )


async def test_a_difference_that_stays_is_named(node: Node, kubelet: Path) -> None:
    await run_pod(node, "a", 4)
    await node.stop_plugin()
    change_status(node.api, allocatedUnits=0, pods=[])
    report = await run(node.api, *local(kubelet), "--settle", "0.01")
    assert report.exit_status is ExitStatus.NO
    lines = printed(report, "audit").splitlines()
    assert lines[0].split() == ["RULE", "KIND", "NODE", "CARD", "POD"]
    assert any("I4     Uncounted" in line for line in lines)
    assert any("units that are in use look free" in line for line in lines)
    found = json.loads(printed(report, "audit", "-o", "json"))
    assert {difference["kind"] for difference in found["differences"]} >= {"Uncounted", "SharesDiffer"}
    assert found["books"] == [*report.books]


async def test_a_difference_that_is_gone_by_then_is_none(node: Node) -> None:
    """Books are read one after another, and pods are on their way."""
    await run_pod(node, "a", 4)
    await node.stop_plugin()
    right = json.loads(json.dumps(node.api.objects[SHARE_NODES]["", NODE]))
    change_status(node.api, allocatedUnits=3)

    async def heal(_: web.Request) -> None:
        node.api.put(SHARE_NODES, right)

    async def wait(_: web.Request) -> None:
        """Reads as it is."""

    node.api.fail("GET", SHARE_NODES, wait, heal)
    assert (await run(node.api, "--settle", "0.01")).differences == []


async def test_an_api_server_that_refuses(node: Node) -> None:
    node.api.fail("GET", PODS, status(403, "pods is forbidden"))
    async with KubeClient(node.api.credentials()) as client:
        with pytest.raises(CannotLookError, match="ClusterRole gpushare-auditor"):
            await read_pods(client)


def test_a_kubelet_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CannotLookError, match="run this as root on the node"):
        read_host(tmp_path)


async def test_a_checkpoint_in_another_format(node: Node, kubelet: Path) -> None:
    node.kubelet.checkpoint.write_bytes(b"{")
    with pytest.raises(CannotLookError, match="unknown format"):
        await run(node.api, *local(kubelet))


async def test_a_node_that_nobody_shares(node: Node, kubelet: Path) -> None:
    node.api.objects[SHARE_NODES].clear()
    with pytest.raises(CannotLookError, match="there is no GPUShareNode"):
        await run(node.api, *local(kubelet))


async def test_a_node_that_is_not_there_is_not_a_node_without_differences(node: Node) -> None:
    node.api.objects[SHARE_NODES].clear()
    with pytest.raises(CannotLookError, match="there is no GPUShareNode 'gpu-11'"):
        await run(node.api, "--node", "gpu-11")


def test_what_is_no_extender(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Something else listens there, and does not speak HTTP."""

    def answer(*_: object, **__: object) -> None:
        raise http.client.BadStatusLine("SSH-2.0")

    monkeypatch.setattr("gpushare_cli.gather.extender.ssl.create_default_context", lambda **_: Context())
    monkeypatch.setattr("gpushare_cli.gather.extender.urllib.request.urlopen", answer)
    with pytest.raises(CannotLookError, match="cannot be asked"):
        read_extender("https://127.0.0.1:1", tmp_path)


class Context:
    """Keys that are in order."""

    def load_cert_chain(self, _: Path) -> None: ...


def test_an_extender_without_keys(tmp_path: Path) -> None:
    with pytest.raises(CannotLookError, match="has the keys"):
        read_extender("https://127.0.0.1:22766", tmp_path)


def test_without_a_cluster_it_cannot_look(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    assert main(["audit"]) == ExitStatus.CANNOT_LOOK
    assert "there is no kubeconfig: looked for" in capsys.readouterr().err


async def test_a_host_folder_needs_a_node(node: Node) -> None:
    with pytest.raises(CannotLookError, match="--host-folder needs --node"):
        await run(node.api, "--host-folder")


@pytest.mark.parametrize(
    "arguments",
    [["audit", "--settle", "-1"], ["audit", "--settle", "soon"], ["audit", "--extender", "http://x"]],
)
def test_arguments_that_make_no_sense(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as error:
        parse(arguments)
    assert error.value.code == 2
    assert "usage: kubectl gpushare" in capsys.readouterr().err


def test_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--version"])
    assert capsys.readouterr().out.startswith("kubectl-gpushare 0.1.0")
