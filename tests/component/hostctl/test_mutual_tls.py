"""Keys on the host, and the installation of an extender that is called by HTTPS."""

import http.client
import os
import shutil
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.fakes.hostctl_kubelet import free_port
from tests.fakes.hostctl_node import FakeNode
from tests.samples.hostctl import EXTENDER, KUBEADM, WITH_CONFIG

from gpushare_hostctl.decide.scheduler import key_pairs, manifest, manifest_edit
from gpushare_hostctl.decide.scheduler.key_pairs import CLIENT_FILE, SERVER_FILE, TRUSTED_FILE, Keys
from gpushare_hostctl.errors import NeedsPersonError, RetryableError, RolledBackError
from gpushare_hostctl.host.extender_probe import Answer, ExtenderProbe, HttpsExtenderProber
from gpushare_hostctl.host.scheduler_waiter import INTERVAL

HTTPS = replace(EXTENDER, url="https://127.0.0.1:32766/gpushare")
NOW = datetime.now(UTC)
KEYS = key_pairs.renew({}, NOW)


@pytest.fixture(params=[pytest.param(KUBEADM, id="no --config"), pytest.param(WITH_CONFIG, id="--config")])
def node(request: pytest.FixtureRequest, tmp_path: Path) -> FakeNode:
    return FakeNode(tmp_path, request.param)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def config_file(node: FakeNode) -> Path:
    return next(node.folder.glob("scheduler-config-*"))


def entry(node: FakeNode) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(config_file(node).read_bytes())
    extender: dict[str, Any] = document["extenders"][-1]
    return extender


def test_keys_are_made_once(node: FakeNode) -> None:
    first = node.make_keys()
    before = {path: path.read_bytes() for path in node.folder.rglob("*.pem")}

    assert first.result == "KeysMade"
    assert node.make_keys().result == "KeysPresent"
    assert {path: path.read_bytes() for path in node.folder.rglob("*.pem")} == before
    assert first.renew_after is not None
    assert first.renew_after > node.now + timedelta(days=200)


def test_keys_are_for_root_and_the_extenders_group(node: FakeNode) -> None:
    node.make_keys()

    assert mode(node.folder) == 0o700
    assert mode(node.folder / "keys") == 0o700
    assert {mode(path) for path in (node.folder / "keys").iterdir()} == {0o600}
    extender = node.folder / "extender"
    assert mode(extender) == 0o750
    assert {path.name: mode(path) for path in extender.iterdir()} == {
        "server.pem": 0o640,
        "authorities.pem": 0o640,
    }
    assert {path.stat().st_gid for path in (extender, *extender.iterdir())} == {os.getgid()}


def test_a_group_that_cannot_be_given_needs_a_person(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "getgid", lambda: 65532)
    monkeypatch.setattr(os, "chown", refuse)
    monkeypatch.setattr(os, "fchown", refuse)

    with pytest.raises(NeedsPersonError, match="supplementalGroups"):
        node.make_keys()


def test_restoring_removes_the_keys(node: FakeNode) -> None:
    node.make_keys()

    node.restore()
    node.assert_untouched()


def on_host(node: FakeNode, path: str) -> Path:
    return node.root / path.lstrip("/")


def test_an_https_extender_is_called_with_the_client_certificate(node: FakeNode) -> None:
    report = node.install(HTTPS)

    assert (report.result, report.renew_after is None) == ("Installed", False)
    assert entry(node)["enableHTTPS"] is True
    tls = {name: on_host(node, path).read_bytes() for name, path in entry(node)["tlsConfig"].items()}
    assert tls["certFile"] == tls["keyFile"] == (node.folder / CLIENT_FILE).read_bytes()
    assert tls["caFile"] == (node.folder / TRUSTED_FILE).read_bytes()
    assert node.install(HTTPS).result == "AlreadyInstalled"
    assert node.restore().result == "Restored"
    node.assert_untouched()


def test_the_files_of_its_keys_are_mounted_into_kube_schedulers_pod(node: FakeNode) -> None:
    node.install(HTTPS)

    scheduler = manifest.parse(node.content)
    for path in entry(node)["tlsConfig"].values():
        assert manifest.host_path(scheduler, path) == path
    with pytest.raises(NeedsPersonError):
        manifest.host_path(scheduler, f"/etc/kubernetes/gpushare/{key_pairs.AUTHORITY_FILE}")


def test_no_key_is_in_the_configuration_which_kube_scheduler_logs(node: FakeNode) -> None:
    node.install(HTTPS)

    text = config_file(node).read_bytes()
    assert b"keyData" not in text
    assert b"PRIVATE" not in text


@pytest.mark.parametrize(
    "user",
    [
        pytest.param(b"runAsUser: 65531", id="a user"),
        pytest.param(b"runAsNonRoot: true", id="the image's user"),
        pytest.param(b"runAsUser: 0", id="root, perhaps of a user namespace"),
    ],
)
def test_a_scheduler_can_read_its_keys_whatever_user_it_runs_as(tmp_path: Path, user: bytes) -> None:
    text = KUBEADM.replace(b"  securityContext:\n", b"  securityContext:\n    " + user + b"\n")
    node = FakeNode(tmp_path, text)

    node.install(HTTPS)

    folder = node.folder / "scheduler"
    assert mode(folder) == 0o755
    assert {mode(path) for path in folder.iterdir()} == {0o644}
    assert mode(config_file(node)) == 0o644
    assert mode(node.folder) == 0o700, "nobody but root gets there"


@pytest.mark.parametrize(
    "run", [FakeNode.make_keys, lambda node: node.install(HTTPS)], ids=["keys", "install"]
)
def test_modes_of_keys_are_mended(node: FakeNode, run: Callable[[FakeNode], object]) -> None:
    node.install(HTTPS)
    paths = [node.folder / "extender", node.folder / SERVER_FILE, node.folder / key_pairs.AUTHORITY_FILE]
    before = [mode(path) for path in paths]
    for path in paths:
        path.chmod(0o777)

    run(node)

    assert [mode(path) for path in paths] == before


def test_lost_keys_of_kube_scheduler_are_written_again(node: FakeNode) -> None:
    node.install(HTTPS)
    shutil.rmtree(node.folder / "scheduler")

    assert node.install(HTTPS).result == "Installed"
    assert len(list((node.folder / "scheduler").iterdir())) == 2


def test_going_back_to_http_takes_the_keys_out_of_kube_scheduler(node: FakeNode) -> None:
    node.install(HTTPS)

    node.install()

    assert not (node.folder / "scheduler").exists()
    assert manifest_edit.KEYS_VOLUME_NAME.encode() not in node.content
    node.restore()
    node.assert_untouched()


def test_a_lost_folder_does_not_keep_the_keys_in_the_manifest(node: FakeNode) -> None:
    node.install(HTTPS)
    shutil.rmtree(node.folder)

    assert node.restore().result == "RestoredPartially"
    node.assert_untouched()


def test_a_plain_extender_has_no_keys(node: FakeNode) -> None:
    assert node.install().renew_after is None
    assert not list(node.folder.rglob("*.pem"))
    assert node.extender.asked == []


def test_keys_near_their_end_are_renewed_by_installing_again(node: FakeNode) -> None:
    node.install(HTTPS)
    before, process = entry(node)["tlsConfig"], node.scheduler.process
    server = (node.folder / SERVER_FILE).read_bytes()
    node.now += timedelta(days=300)

    assert node.install(HTTPS).result == "Installed"

    assert entry(node)["tlsConfig"]["certFile"] != before["certFile"]
    assert entry(node)["tlsConfig"]["caFile"] == before["caFile"]
    assert len(list((node.folder / "scheduler").iterdir())) == 2
    assert (node.folder / SERVER_FILE).read_bytes() != server
    assert node.scheduler.process == process + 1
    assert len(list(node.folder.glob("scheduler-config-*"))) == 1


def test_kube_scheduler_is_edited_once_the_extender_serves_with_the_keys(node: FakeNode) -> None:
    node.extender.answers = ["nobody", "unready", "stranger", "ready"]

    assert node.install(HTTPS).result == "Installed"
    assert node.extender.asked == [HTTPS.url] * 4


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        pytest.param("nobody", RetryableError, "no extender is ready", id="nobody"),
        pytest.param("unready", RetryableError, "no extender is ready", id="one that does not serve yet"),
        pytest.param("stranger", NeedsPersonError, "another program took port 32766", id="a stranger"),
    ],
)
def test_without_the_extender_kube_scheduler_is_not_edited(
    node: FakeNode, answer: Answer, error: type[Exception], message: str
) -> None:
    node.extender.answers = [answer]

    with pytest.raises(error, match=message):
        node.install(HTTPS)
    assert node.content == node.original


def test_the_longest_back_off_of_the_kubelet_over_the_missing_folder_is_waited_for(node: FakeNode) -> None:
    back_off, start = 122.0, 20.0
    node.timeout = 120.0
    away: list[Answer] = ["nobody"] * int((back_off + start) / INTERVAL)
    node.extender.answers = [*away, "ready"]

    assert node.install(HTTPS).result == "Installed"


def test_a_run_that_is_stopped_while_it_waits_for_the_extender_edits_nothing(node: FakeNode) -> None:
    node.extender.answers = ["nobody"]
    node.is_stopped = True

    with pytest.raises(RetryableError, match="stopped from outside"):
        node.install(HTTPS)
    assert node.content == node.original


def test_a_rollback_leaves_the_extender_its_keys(node: FakeNode) -> None:
    node.scheduler.fails = lambda content: manifest_edit.VOLUME_NAME.encode() in content

    with pytest.raises(RolledBackError):
        node.install(HTTPS)

    assert node.content == node.original
    assert {path.name for path in node.folder.iterdir()} == {"keys", "extender"}
    assert node.make_keys().result == "KeysPresent"
    node.restore()
    node.assert_untouched()


def test_new_keys_are_no_reason_to_try_a_failed_edit_again(node: FakeNode) -> None:
    node.scheduler.fails = lambda content: manifest_edit.VOLUME_NAME.encode() in content
    with pytest.raises(RolledBackError) as raised:
        node.install(HTTPS)
    node.now += timedelta(days=300)

    with pytest.raises(RolledBackError, match="not tried again"):
        node.install(HTTPS, rolled_back_inputs=raised.value.inputs)


# Against servers that speak TLS.


class _Handler(BaseHTTPRequestHandler):
    status = 200

    def do_GET(self) -> None:
        if not self.status:
            return
        self.send_response(self.status if self.path == "/readyz" else 404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Keep the test's output readable."""


def server_context(folder: Path, keys: Keys) -> ssl.SSLContext:
    """What the extender does with the files of its folder."""
    (folder / "server.pem").write_bytes(keys.server.encode())
    (folder / "authorities.pem").write_bytes(keys.trusted_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    context.load_verify_locations(folder / "authorities.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    return context


@contextmanager
def serving(context: ssl.SSLContext | None, *, status: int = 200) -> Iterator[str]:
    class Server(HTTPServer):
        def handle_error(self, *_: object) -> None:
            """Refusing a client is what some tests are about."""

    server = Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"status": status}))
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def probe(url: str, keys: Keys = KEYS) -> ExtenderProbe:
    return HttpsExtenderProber().probe(url, keys)


def test_an_extender_with_the_keys_is_ready_or_not_yet(tmp_path: Path) -> None:
    with serving(server_context(tmp_path, KEYS)) as url:
        assert probe(url).answer == "ready"
    with serving(server_context(tmp_path, KEYS), status=503) as url:
        assert probe(url) == ExtenderProbe("unready", "HTTP 503")


def test_whoever_has_other_keys_is_a_stranger(tmp_path: Path) -> None:
    with serving(server_context(tmp_path, key_pairs.renew({}, NOW))) as url:
        assert probe(url).answer == "stranger"


def test_a_server_without_tls_is_a_stranger() -> None:
    with serving(None) as url:
        assert probe(url).answer == "stranger"


@contextmanager
def answering(content: bytes | None) -> Iterator[str]:
    """A server that answers the first message with this, or by resetting the connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1 << 16)
                if content is None:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    return
                connection.sendall(content)

        thread = threading.Thread(target=answer)
        thread.start()
        yield f"https://127.0.0.1:{server.getsockname()[1]}"
        thread.join()


@pytest.mark.parametrize(
    ("content", "answer"),
    [
        pytest.param(None, "nobody", id="the connection is reset"),
        pytest.param(b"", "nobody", id="the connection ends"),
        pytest.param(b"\x15\x03\x03\x00\x02\x02\x28", "nobody", id="a TLS alert"),
        pytest.param(b"SSH-2.0-OpenSSH_9\r\n", "stranger", id="another protocol"),
    ],
)
def test_who_has_not_shown_a_certificate_is_a_stranger_only_without_tls(
    content: bytes | None, answer: Answer
) -> None:
    with answering(content) as url:
        assert probe(url).answer == answer


def test_an_extender_that_has_not_loaded_the_clients_authority_is_not_ready_yet(tmp_path: Path) -> None:
    others = key_pairs.renew({}, NOW)
    half_loaded = replace(KEYS, authority=replace(KEYS.authority, certificate=others.authority.certificate))

    with serving(server_context(tmp_path, half_loaded)) as url:
        assert probe(url).answer == "unready"


def test_an_extender_that_ends_before_it_answers_is_not_ready_yet(tmp_path: Path) -> None:
    with serving(server_context(tmp_path, KEYS), status=0) as url:
        assert probe(url).answer == "unready"


def test_nobody_is_nobody() -> None:
    assert probe(f"https://127.0.0.1:{free_port()}").answer == "nobody"


@pytest.mark.parametrize(
    "client",
    [
        pytest.param(None, id="no certificate"),
        pytest.param(key_pairs.renew({}, NOW).client, id="a certificate of another authority"),
        pytest.param(KEYS.server, id="the extender's own certificate"),
    ],
)
def test_the_extender_refuses_everybody_but_kube_scheduler(
    tmp_path: Path, client: key_pairs.KeyPair | None
) -> None:
    with serving(server_context(tmp_path, KEYS)) as url:
        context = ssl.create_default_context(cadata=KEYS.trusted_pem.decode())
        if client:
            (tmp_path / "client.pem").write_bytes(client.encode())
            context.load_cert_chain(tmp_path / "client.pem")
        connection = http.client.HTTPSConnection(url.removeprefix("https://"), context=context, timeout=5)
        with pytest.raises(OSError, match=r"(?i)certificate|alert|reset|closed|broken|EOF"):
            _ask(connection)


def _ask(connection: http.client.HTTPSConnection) -> None:
    try:
        connection.request("GET", "/readyz")
        connection.getresponse()
    finally:
        connection.close()


@pytest.mark.parametrize("renewed_side", ["client", "server"])
def test_sides_renewed_at_different_times_still_know_each_other(tmp_path: Path, renewed_side: str) -> None:
    early = key_pairs.renew({}, NOW - key_pairs.LIFETIME * 0.7)
    late = key_pairs.renew(early.files(), NOW)
    mixed = replace(early, **{renewed_side: getattr(late, renewed_side)})

    with serving(server_context(tmp_path, mixed)) as url:
        assert probe(url, mixed).answer == "ready"
