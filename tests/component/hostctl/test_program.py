"""gpushare-hostctl as the Job runs it, beside a kube-scheduler that answers over HTTPS."""

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.fakes.hostctl_kubelet import HttpsServer, Kubelet, free_port
from tests.samples.hostctl import ENDPOINT, KUBEADM

from gpushare_core.text.json_object import Json
from gpushare_hostctl.decide.run.process_identity import ProcessIdentity
from gpushare_hostctl.decide.run.restart_detector import ProbeResult
from gpushare_hostctl.decide.scheduler.health_endpoint import HealthEndpoint
from gpushare_hostctl.host import health_probe, scheduler_waiter
from gpushare_hostctl.host.health_probe import HttpsProber
from gpushare_hostctl.main import main

MANIFEST = "etc/kubernetes/manifests/kube-scheduler.yaml"
OWN = "/etc/kubernetes/own.yaml"
EXTENDER = ("--extender-url", "http://127.0.0.1:32766", "--managed-resource", "gpushare.io/memory")


@dataclass
class Host:
    """The root of a control-plane node below a temporary folder."""

    root: Path
    kubelet: Kubelet

    @property
    def manifest(self) -> Path:
        return self.root / MANIFEST

    @property
    def termination_log(self) -> Path:
        return self.root / "termination-log"

    def arguments(self, command: str, *more: str, timeout: float = 60) -> list[str]:
        log = str(self.termination_log)
        common = ["--root", str(self.root), "--timeout", str(timeout), "--termination-log", log]
        return [command, *common, *(EXTENDER if command == "install" else ()), *more]


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    """Whose kube-scheduler has a minute to come, and does not have to serve for as long as on a real one."""
    monkeypatch.setattr(scheduler_waiter, "PROVEN_SECONDS", 3.0)
    monkeypatch.setattr(scheduler_waiter, "UNPROVEN_SECONDS", 5.0)
    port = free_port()
    manifest = tmp_path / MANIFEST
    manifest.parent.mkdir(parents=True)
    manifest.write_text(KUBEADM.decode().replace("--leader-elect=true", f"--secure-port={port}"))
    kubelet = Kubelet(manifest, port=port)
    yield Host(tmp_path, kubelet)
    kubelet.stop()


def last_line(capsys: pytest.CaptureFixture[str]) -> Json:
    report: Json = json.loads(capsys.readouterr().out.splitlines()[-1])
    return report


def test_a_whole_life_of_install_status_and_restore(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    original = host.manifest.read_bytes()

    assert main(host.arguments("install")) == 0
    installed = last_line(capsys)
    assert installed["result"] == "Installed"
    assert json.loads(host.termination_log.read_text()) == installed
    assert main(host.arguments("install")) == 0
    assert last_line(capsys)["result"] == "AlreadyInstalled"

    assert main(host.arguments("status")) == 0
    status = last_line(capsys)
    assert status["state"] == "Installed"
    assert status["sha256"] == status["sha256Written"] == installed["sha256After"]

    assert main(host.arguments("restore")) == 0
    restored = last_line(capsys)
    assert restored["result"] == "Restored"
    assert restored["sha256After"] == installed["sha256Before"]
    assert host.manifest.read_bytes() == original
    assert main(host.arguments("status")) == 0
    assert last_line(capsys)["state"] == "Absent"


PLUGIN = (
    "--engine",
    "Plugin",
    "--scheduler-image",
    "gpushare-scheduler:0.1.0-1.36",
    "--lease-namespace",
    "gpushare-system",
    "--managed-resource",
    "gpushare.io/memory",
)


def test_the_engine_is_changed_by_the_arguments_alone(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    original = host.manifest.read_bytes()
    with_plugin = ["install", *host.arguments("restore")[1:], *PLUGIN]

    for arguments, image in (
        (with_plugin, "gpushare-scheduler:0.1.0-1.36"),
        (host.arguments("install"), "registry.k8s.io/kube-scheduler:v1.36.3"),
        (with_plugin, "gpushare-scheduler:0.1.0-1.36"),
    ):
        assert main(arguments) == 0
        assert last_line(capsys)["result"] == "Installed"
        assert f"    image: {image}\n" in host.manifest.read_text()
    assert main(host.arguments("restore")) == 0
    assert host.manifest.read_bytes() == original


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param((*PLUGIN, *EXTENDER), id="both engines"),
        pytest.param(PLUGIN[:2] + PLUGIN[4:], id="a plugin without its image"),
        pytest.param(PLUGIN[:4] + PLUGIN[6:], id="a plugin that knows no Lease"),
        pytest.param((*EXTENDER, *PLUGIN[2:4]), id="an image for the extender"),
        pytest.param((*PLUGIN[:3], "a b", *PLUGIN[4:]), id="no image"),
    ],
)
def test_arguments_that_do_not_belong_together_are_refused(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["install", "--root", str(tmp_path), *arguments])


def test_restoring_what_was_never_installed_is_nothing_to_do(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(host.arguments("restore")) == 0
    assert last_line(capsys)["result"] == "NothingToDo"


def test_a_scheduler_that_stays_away_ends_with_3(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    original = host.manifest.read_bytes()
    host.kubelet.broken = b"gpushare"

    assert main(host.arguments("install", timeout=10)) == 3

    report = last_line(capsys)
    assert report["result"] == "RolledBack"
    assert "serves again" in report["message"]
    assert report["sha256Before"] == report["sha256After"]
    assert host.manifest.read_bytes() == original

    same = ("--rolled-back-inputs", report["inputs"])
    assert main(host.arguments("install", *same, timeout=10)) == 3
    assert "not tried again" in last_line(capsys)["message"]


def test_a_manifest_that_is_none_ends_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = tmp_path / MANIFEST
    manifest.parent.mkdir(parents=True)
    manifest.write_text("kind: ConfigMap\n")

    assert main(["install", "--root", str(tmp_path), *EXTENDER]) == 2
    assert last_line(capsys)["result"] == "Failed"


def test_a_node_without_the_folder_ends_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["install", "--root", str(tmp_path), *EXTENDER]) == 2
    assert "there is no folder /etc/kubernetes" in last_line(capsys)["message"]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        pytest.param(PermissionError(13, "Permission denied"), "may not be read", id="denied"),
        pytest.param(OSError(30, "Read-only file system"), "Read-only", id="read-only"),
    ],
)
def test_a_file_that_root_may_not_read_ends_with_2(
    host: Host,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    error: OSError,
    message: str,
) -> None:
    own = host.root / "etc/kubernetes/own.yaml"
    own.write_text("kind: KubeSchedulerConfiguration\n")
    text = host.manifest.read_text().replace(
        "- kube-scheduler\n", f"- kube-scheduler\n    - --config={OWN}\n"
    )
    text = text.replace("volumeMounts:\n", f"volumeMounts:\n    - {{name: own, mountPath: {OWN}}}\n")
    text = text.replace("volumes:\n", f"volumes:\n  - {{name: own, hostPath: {{path: {OWN}}}}}\n")
    host.manifest.write_text(text)
    open_file = os.open

    def refuse(path: Path, *arguments: int) -> int:
        if Path(path) == own:
            raise error
        return open_file(path, *arguments)

    monkeypatch.setattr(os, "open", refuse)
    before = host.manifest.read_bytes()

    assert main(host.arguments("install")) == 2
    assert message in last_line(capsys)["message"]
    assert host.manifest.read_bytes() == before


def test_keys_are_made_and_restored_away(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    group = ("--extender-group", str(os.getgid()))

    assert main(host.arguments("keys", *group)) == 0
    made = last_line(capsys)
    assert made["result"] == "KeysMade"
    assert datetime.fromisoformat(made["renewAfter"]) > datetime.now(UTC)
    assert main(host.arguments("keys", *group)) == 0
    assert last_line(capsys) == {**made, "result": "KeysPresent", "message": "the keys are good"}

    assert main(host.arguments("restore")) == 0
    assert not (host.root / "etc/kubernetes/gpushare").exists()


def test_an_extender_by_https_that_is_not_there_ends_with_1(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    before = host.manifest.read_bytes()
    arguments = host.arguments("install", "--extender-group", str(os.getgid()), timeout=1)
    url = f"https://127.0.0.1:{free_port()}"

    assert main([*arguments, "--extender-url", url]) == 1
    assert f"no extender is ready at {url}" in last_line(capsys)["message"]
    assert host.manifest.read_bytes() == before


def test_another_program_at_the_extenders_port_ends_with_2(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    server = HttpsServer(statuses={"/readyz": 200})
    arguments = host.arguments("install", "--extender-group", str(os.getgid()), timeout=1)
    try:
        assert main([*arguments, "--extender-url", f"https://127.0.0.1:{server.port}"]) == 2
    finally:
        server.stop()
    assert f"another program took port {server.port}" in last_line(capsys)["message"]


def test_two_runs_at_once_are_kept_apart(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    descriptor = os.open(host.root / "etc/kubernetes", os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        assert main(host.arguments("install")) == 1
    finally:
        os.close(descriptor)

    assert "another gpushare-hostctl" in last_line(capsys)["message"]


def test_a_damaged_record_is_unknown_in_the_status(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    folder = host.root / "etc/kubernetes/gpushare"
    folder.mkdir()
    (folder / "state.json").write_text("{")

    assert main(host.arguments("status")) == 2
    assert last_line(capsys)["state"] == "Unknown"


def test_a_stopped_job_says_so_and_the_next_one_finishes(host: Host) -> None:
    host.kubelet.broken = b"gpushare"
    program = [sys.executable, "-m", "gpushare_hostctl.main", *host.arguments("install", timeout=60)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "waiting for kube-scheduler" in line:
                break
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=30)

    assert process.returncode == 1
    report = json.loads(output)
    assert "stopped from outside" in report["message"]
    assert report["sha256After"] == report["sha256Before"]
    host.kubelet.broken = b"never"
    assert main(host.arguments("restore")) == 0
    assert not (host.root / "etc/kubernetes/gpushare").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["install", "--root", "/x"], id="no URL"),
        pytest.param(["install", "--root", "/x", "--extender-url", "127.0.0.1"], id="no http"),
        pytest.param(["install", "--root", "/x", *EXTENDER, "--managed-resource", "memory"], id="no domain"),
        pytest.param(["install", "--root", "/x", *EXTENDER, "--http-timeout", "5"], id="no unit"),
        pytest.param(["install", "--root", "/x", *EXTENDER, "--manifest", "k.yaml"], id="not absolute"),
        pytest.param(["install", "--root", "/x", *EXTENDER, "--timeout", "0"], id="no time"),
        pytest.param(["install", "--root", "/x", *EXTENDER, "--timeout", "nan"], id="a time that is none"),
        pytest.param(["install", "--root", "/x", *EXTENDER, "--weight", "00010000"], id="too much weight"),
        pytest.param(
            ["install", "--root", "/x", *EXTENDER, "--extender-url", "https://10.0.0.1:1"],
            id="https elsewhere",
        ),
        pytest.param(["restore", "--root", "/x", *EXTENDER], id="an extender for restore"),
        pytest.param(["status"], id="no root"),
        pytest.param([], id="no command"),
    ],
)
def test_a_wrong_command_line_ends_with_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        main(arguments)
    assert raised.value.code == 2


def test_the_version_is_the_distributions(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out.startswith("gpushare-hostctl ")


def probe(statuses: dict[str, int]) -> ProbeResult:
    server = HttpsServer(statuses=statuses)
    try:
        return HttpsProber().probe(endpoint(server.port))
    finally:
        server.stop()


def endpoint(port: int) -> HealthEndpoint:
    return replace(ENDPOINT, port=port)


@pytest.mark.parametrize(
    ("statuses", "serving"),
    [
        pytest.param({"/readyz": 200}, True, id="ready"),
        pytest.param({"/readyz": 500}, False, id="not ready"),
        pytest.param({"/readyz": 403}, True, id="we may not ask"),
        pytest.param({"/healthz": 200}, True, id="an older release"),
        pytest.param({"/healthz": 500}, False, id="an older release that is ill"),
        pytest.param({}, False, id="another program"),
    ],
)
def test_the_answer_tells_whether_it_serves(statuses: dict[str, int], serving: bool) -> None:  # noqa: FBT001
    assert probe(statuses).serving is serving


def test_every_process_has_its_own_certificate_and_socket() -> None:
    servers = [HttpsServer(process=process, statuses={"/readyz": 200}) for process in (1, 2, 1)]
    first, second, third = (HttpsProber().probe(endpoint(server.port)).process for server in servers)
    for server in servers:
        server.stop()

    assert first.certificate == third.certificate
    assert first.certificate != second.certificate
    assert len({first.sockets, second.sockets, third.sockets}) == 3


def test_a_process_keeps_its_socket_and_the_next_one_at_its_port_has_another() -> None:
    server = HttpsServer(statuses={"/readyz": 200})
    first, again = (HttpsProber().probe(endpoint(server.port)).process for _ in range(2))
    server.stop()
    server = HttpsServer(port=server.port, statuses={"/readyz": 200})
    other = HttpsProber().probe(endpoint(server.port)).process
    server.stop()

    assert first == again
    assert first.sockets
    assert first.certificate == other.certificate
    assert first.is_followed_by(again, lasting_certificate=True) is False
    assert first.is_followed_by(other, lasting_certificate=True) is True


def test_nobody_at_the_port_has_no_socket_and_refuses() -> None:
    result = HttpsProber().probe(endpoint(free_port()))

    assert (result.serving, result.refused) == (False, True)
    assert result.process == ProcessIdentity(sockets=(), certificate=None)


def test_a_server_that_takes_too_long_does_not_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health_probe, "_TIMEOUT", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        result = HttpsProber().probe(endpoint(server.getsockname()[1]))

    assert (result.serving, result.refused) == (False, False)
    assert result.process.sockets


def test_a_server_without_tls_does_not_serve() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        thread = threading.Thread(target=lambda: server.accept()[0].close())
        thread.start()
        result = HttpsProber().probe(endpoint(port))
        thread.join()

    assert not result.serving


ARGUMENTS = ("--extender-url", "https://127.0.0.1:22766/gpushare", "--managed-resource", "gpushare.io/memory")


def test_render_prints_the_configuration_apart_from_what_to_do(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    present = tmp_path / "present.yaml"
    present.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
    assert main(["render", *ARGUMENTS, "--config", str(present)]) == 0
    merged, instructions = capsysbinary.readouterr()
    assert merged.startswith(
        present.read_bytes() + b"extenders:\n- urlPrefix: https://127.0.0.1:22766/gpushare\n"
    )
    assert b"gpushare-hostctl keys --root /" in instructions

    assert main(["render", *ARGUMENTS, "--", "--kubeconfig=/a.conf", "--kube-api-qps=7"]) == 0
    assert b"kubeconfig: /a.conf\n  qps: 7.0\n" in capsysbinary.readouterr().out
    assert sorted(tmp_path.iterdir()) == [present], "nothing is touched"


def test_render_of_what_cannot_be_read_ends_with_2(tmp_path: Path) -> None:
    assert main(["render", *ARGUMENTS, "--config", str(tmp_path / "none")]) == 2
