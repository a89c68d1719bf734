"""``kubectl gpushare audit --residue`` against an API server and the files of a host."""

import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.component.cli.commands import printed
from tests.fakes.system_tls import system_tls

from gpushare_cli.arguments import parse
from gpushare_cli.errors import CannotLookError
from gpushare_cli.gather.cluster import COLLECTIONS
from gpushare_cli.gather.host_files import read_host_files
from gpushare_cli.gather.residue import LOOK_SECONDS, HostRoot, find_residue
from gpushare_cli.output.progress import Silence
from gpushare_cli.report import ExitStatus
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import Credentials
from gpushare_core.text.json_object import Json


async def run(
    objects: dict[str, list[Json]], *arguments: str, gone: tuple[str, ...] = (), **time: Any
) -> tuple[str, ExitStatus]:
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
            command = ["audit", "--residue", "--settle", "0", *arguments]
            options = parse(command)
            host_root = HostRoot(path=options.host_root, node=options.node)
            report = await find_residue(
                client, host=host_root, settle=options.settle, progress=Silence(), **time
            )
    return printed(report, *command), report.exit_status


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
    assert code is ExitStatus.GOOD
    assert "Nothing is left. Looked at 13 kinds of objects, n:/etc/kubernetes" in text


async def test_what_is_left_is_named(tmp_path: Path) -> None:
    labels = {"gpushare.io/policy": "default"}
    objects: dict[str, list[Json]] = {"Node": [{"metadata": {"name": "n", "labels": labels}}]}
    text, code = await run(objects, "--host-root", str(host(tmp_path)), "--node", "n")
    assert code is ExitStatus.NO
    assert "Node n: the label gpushare.io/policy=default is gpushare's: kubectl label node n" in text
    assert "host n, /etc/kubernetes/gpushare/state.json: keys, backups" in text
    assert "host n, /etc/kubernetes/manifests/kube-scheduler.yaml: it still names gpushare's extender" in text
    assert "gpushare-gpushare.io-memory.sock: the socket of a plugin that is gone" in text
    assert "4 things left." in text
    found = json.loads((await run(objects, "-o", "json"))[0])
    assert [left["where"] for left in found["residue"]] == ["Node n"]


async def test_an_empty_folder_of_ours_is_left(tmp_path: Path) -> None:
    root = host(tmp_path, clean=True)
    (root / "etc" / "kubernetes" / "gpushare" / "keys").mkdir(parents=True)
    text, code = await run({}, "--host-root", str(root), "--node", "n")
    assert code is ExitStatus.NO
    assert "host n, /etc/kubernetes/gpushare/keys: " in text


async def test_a_socket_of_a_plugin_that_was_killed_while_it_began(tmp_path: Path) -> None:
    root = host(tmp_path, clean=True)
    (root / "var" / "lib" / "kubelet" / "device-plugins" / ".gpushare-0a1b2c3d").touch()
    text, _ = await run({}, "--host-root", str(root), "--node", "n")
    assert "device-plugins/.gpushare-0a1b2c3d: the socket of a plugin that is gone" in text


async def test_without_the_definitions_there_are_no_policies() -> None:
    _, code = await run({}, gone=("GPUSharePolicy", "GPUShareNode"))
    assert code is ExitStatus.GOOD


async def test_what_cannot_be_listed_is_said() -> None:
    with pytest.raises(CannotLookError, match="daemonsets"):
        await run({}, gone=("DaemonSet",))


def test_a_root_that_is_no_hosts(tmp_path: Path) -> None:
    with pytest.raises(CannotLookError, match="give the root of a node's files"):
        read_host_files(tmp_path)


ZERO: Json = {
    "metadata": {"name": "gpu-1"},
    "status": {"capacity": {"gpushare.io/memory": "0"}, "allocatable": {"gpushare.io/memory": "0"}},
}
DEAD: Json = {
    "metadata": {"name": "gpu-1"},
    "status": {"capacity": {"gpushare.io/memory": "48"}, "allocatable": {"gpushare.io/memory": "0"}},
}
CLEAN: Json = {"metadata": {"name": "gpu-1"}, "status": {}}


class Moments:
    """The only node as it is at one moment after the other; time passes where somebody sleeps."""

    def __init__(self, *nodes: Json) -> None:
        self.nodes = nodes
        self.now = 0.0
        self.objects: dict[str, list[Json]] = {"Node": [nodes[0]]}

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        look = min(round(self.now / LOOK_SECONDS), len(self.nodes) - 1)
        self.objects["Node"] = [self.nodes[look]]

    async def residue(self, *arguments: str) -> tuple[str, ExitStatus]:
        return await run(self.objects, "--settle", "15", *arguments, sleep=self.sleep, clock=lambda: self.now)


async def test_right_after_a_deletion_it_waits_for_what_kubelets_write_once_more() -> None:
    """Seen on a real cluster: nothing left, and four seconds later the zeros of two nodes."""
    moments = Moments(CLEAN, CLEAN, ZERO)
    text, code = await moments.residue()
    assert code is ExitStatus.NO
    assert "Node gpu-1: its status shows 0 of gpushare.io/memory" in text
    assert "1 thing left, 1 of which goes by itself within 5 minutes." in text
    assert moments.now == 15.0, "bounded"


async def test_what_goes_by_itself_meanwhile_is_not_left() -> None:
    text, code = await Moments(ZERO, ZERO, CLEAN).residue()
    assert (code, text.split(".")[0]) == (ExitStatus.GOOD, "Nothing is left")


async def test_the_capacity_of_a_plugin_that_was_dead_says_how_long_the_kubelet_keeps_it() -> None:
    text, code = await Moments(DEAD).residue()
    assert code is ExitStatus.NO
    assert "shows a capacity of 48 of gpushare.io/memory, none of it allocatable" in text
    assert "for 5 minutes (endpointStopGracePeriod)" in text
    assert json.loads((await Moments(DEAD).residue("-o", "json"))[0])["residue"][0]["passes"] is True


async def test_what_does_not_go_by_itself_is_told_at_once() -> None:
    moments = Moments({"metadata": {"name": "gpu-1", "labels": {"gpushare.io/policy": "default"}}})
    _, code = await moments.residue()
    assert (code, moments.now) == (ExitStatus.NO, 0.0)


@pytest.mark.parametrize(
    ("metadata", "passes"),
    [
        pytest.param({"ownerReferences": [{"kind": "Job"}]}, True, id="its Job is deleted first"),
        pytest.param({"deletionTimestamp": "2026-11-26T10:00:00Z"}, True, id="it is stopped"),
        pytest.param(
            {"deletionTimestamp": "2026-11-26T10:00:00Z", "finalizers": ["batch.kubernetes.io/job-tracking"]},
            True,
            id="the Job controller has to count it",
        ),
        pytest.param({}, False, id="orphaned"),
        pytest.param(
            {"deletionTimestamp": "2026-11-26T10:00:00Z", "finalizers": ["example.org/keep"]},
            False,
            id="kept by somebody",
        ),
    ],
)
async def test_which_pods_go_by_themselves(metadata: Json, *, passes: bool) -> None:
    labels = {"app.kubernetes.io/managed-by": "gpushare-operator"}
    pod = {"metadata": {"namespace": "gpushare-system", "name": "p", "labels": labels, **metadata}}
    text, code = await run({"Pod": [pod]}, "-o", "json")
    assert code is ExitStatus.NO
    assert [left["passes"] for left in json.loads(text)["residue"]] == [passes]
