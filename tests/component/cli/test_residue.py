"""``kubectl gpushare audit --residue`` against an API server and the files of a host."""

import json
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.fakes.system_tls import system_tls

from gpushare_cli.arguments import parse
from gpushare_cli.decide.report import ExitCode
from gpushare_cli.gather.errors import CannotLookError
from gpushare_cli.gather.host_files import read_host_files
from gpushare_cli.gather.traces import COLLECTIONS
from gpushare_cli.residue import find_residue
from gpushare_core.json_object import Json
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import Credentials


async def run(
    objects: dict[str, list[Json]], *arguments: str, gone: tuple[str, ...] = ()
) -> tuple[str, ExitCode]:
    """An API server that has ``objects``, by kind; the kinds ``gone`` it does not know."""

    async def answer(request: web.Request) -> web.Response:
        kind = next(kind for kind, path in COLLECTIONS.items() if path == request.path)
        if kind in gone:
            return web.json_response({"kind": "Status", "code": 404, "message": "not found"}, status=404)
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": objects.get(kind, [])})

    app = web.Application()
    app.router.add_get("/{rest:.*}", answer)
    async with TestServer(app) as server:
        url = str(server.make_url("")).rstrip("/")
        credentials = Credentials(url, system_tls, lambda: None)
        async with KubeClient(credentials) as client:
            return await find_residue(client, parse(["audit", "--residue", *arguments], {}))


def host(root: Path, *, clean: bool = False) -> Path:
    manifests = root / "etc" / "kubernetes" / "manifests"
    manifests.mkdir(parents=True)
    ours = "" if clean else "--config=/etc/kubernetes/gpushare/scheduler-config-0123456789ab.yaml"
    (manifests / "kube-scheduler.yaml").write_text(f"command: [kube-scheduler, {ours}]")
    (root / "var" / "lib" / "kubelet" / "device-plugins").mkdir(parents=True)
    if not clean:
        (root / "etc" / "kubernetes" / "gpushare").mkdir()
        (root / "etc" / "kubernetes" / "gpushare" / "state.json").touch()
        (root / "var" / "lib" / "kubelet" / "device-plugins" / "gpushare-gpushare.io-memory.sock").touch()
    return root


async def test_nothing_is_left(tmp_path: Path) -> None:
    root = host(tmp_path, clean=True)
    text, code = await run({"Node": [{"metadata": {"name": "n"}}]}, "--host-root", str(root), "--node", "n")
    assert code is ExitCode.NONE
    assert "Nothing is left. Looked at 13 kinds of objects, n:/etc/kubernetes" in text


async def test_what_is_left_is_named(tmp_path: Path) -> None:
    labels = {"gpushare.io/policy": "default"}
    objects: dict[str, list[Json]] = {"Node": [{"metadata": {"name": "n", "labels": labels}}]}
    text, code = await run(objects, "--host-root", str(host(tmp_path)), "--node", "n")
    assert code is ExitCode.FOUND
    assert "Node n: the label gpushare.io/policy=default is ours: kubectl label node n" in text
    assert "host n, /etc/kubernetes/gpushare/state.json: keys, backups" in text
    assert "host n, /etc/kubernetes/manifests/kube-scheduler.yaml: it still names our extender" in text
    assert "gpushare-gpushare.io-memory.sock: the socket of a plugin that is gone" in text
    assert "4 things left." in text
    found = json.loads((await run(objects, "-o", "json"))[0])
    assert [each["where"] for each in found["residue"]] == ["Node n"]


async def test_an_empty_folder_of_ours_is_left(tmp_path: Path) -> None:
    root = host(tmp_path, clean=True)
    (root / "etc" / "kubernetes" / "gpushare" / "keys").mkdir(parents=True)
    text, code = await run({}, "--host-root", str(root), "--node", "n")
    assert code is ExitCode.FOUND
    assert "host n, /etc/kubernetes/gpushare/keys: " in text


async def test_a_socket_of_a_plugin_that_was_killed_while_it_began(tmp_path: Path) -> None:
    root = host(tmp_path, clean=True)
    (root / "var" / "lib" / "kubelet" / "device-plugins" / ".gpushare-0a1b2c3d").touch()
    text, _ = await run({}, "--host-root", str(root), "--node", "n")
    assert "device-plugins/.gpushare-0a1b2c3d: the socket of a plugin that is gone" in text


async def test_without_the_definitions_there_are_no_policies() -> None:
    _, code = await run({}, gone=("GPUSharePolicy", "GPUShareNode"))
    assert code is ExitCode.NONE


async def test_what_cannot_be_listed_is_said() -> None:
    with pytest.raises(CannotLookError, match="daemonsets"):
        await run({}, gone=("DaemonSet",))


def test_a_root_that_is_no_hosts(tmp_path: Path) -> None:
    with pytest.raises(CannotLookError, match="give the root of a node's files"):
        read_host_files(tmp_path)
