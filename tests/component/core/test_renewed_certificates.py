"""Renewed certificates on disk are used without a restart, as a server sees."""

import asyncio
import json
import shutil
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.fakes.api_server import PODS
from tests.fakes.extender_keys import PAIRS, KeyFolder
from tests.fakes.operator_server import kubeconfig_for

from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import Credentials, from_kubeconfig, in_cluster
from gpushare_core.kube.errors import NotSentError
from gpushare_core.kube.request import ApiRequest
from gpushare_core.kube.tls import RENEW_SECONDS, RenewedTls, TlsParts
from gpushare_operator.process.login import login

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}\n"


@dataclass
class Server:
    """Records the certificate of each request. It trusts both authorities."""

    keys: KeyFolder
    port: int = 0
    connections: int = 0
    seen: list[str] = field(default_factory=list)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        tls = self.keys.files.load()
        tls.load_verify_locations(cadata="".join(pem(name, "ca.pem") for name in ("first", "second")))
        tls.verify_mode = ssl.CERT_OPTIONAL
        server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, ssl=tls)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while await reader.readuntil(b"\r\n\r\n"):
                shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
                self.seen.append(BEARERS.get(shown, "nobody"))
                writer.write(ANSWER)
        writer.close()


def pem(authority: str, name: str) -> str:
    return (PAIRS / authority / name).read_text()


def der(authority: str) -> bytes:
    return ssl.PEM_cert_to_DER_cert(pem(authority, "client.pem"))


BEARERS = {der(name): name for name in ("first", "second")}


def renew(folder: Path, authority: str, *names: str) -> None:
    """As the kubelet does it: each file in one step."""
    for name in names or ("ca.pem", "client.pem", "client.key"):
        shutil.copy(PAIRS / authority / name, folder / "new")
        (folder / "new").rename(folder / name)


@pytest.fixture
def keys(tmp_path: Path) -> KeyFolder:
    (tmp_path / "server").mkdir()
    folder = KeyFolder(tmp_path / "server")
    folder.write("first")
    return folder


@pytest.fixture(autouse=True)
def looked_at_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpushare_core.kube.tls.RENEW_SECONDS", 0.0)


@pytest.fixture
async def server(keys: KeyFolder) -> AsyncIterator[Server]:
    serves = Server(keys)
    async with serves.serving():
        yield serves


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of the client's files."""
    (tmp_path / "client").mkdir()
    renew(tmp_path / "client", "first")
    return tmp_path / "client"


def kubeconfig(server: Server, folder: Path) -> Path:
    cluster = {"server": f"https://127.0.0.1:{server.port}", "certificate-authority": "ca.pem"}
    user = {"client-certificate": "client.pem", "client-key": "client.key"}
    config = {
        **kubeconfig_for("it"),
        "clusters": [{"name": "it", "cluster": cluster}],
        "users": [{"name": "it", "user": user}],
    }
    (folder / "kubeconfig").write_text(json.dumps(config))
    return folder / "kubeconfig"


@pytest.fixture(params=["core's", "the operator's"])
async def credentials(request: pytest.FixtureRequest, server: Server, folder: Path) -> Credentials:
    path = kubeconfig(server, folder)
    return await login(path) if request.param == "the operator's" else from_kubeconfig(path)


async def watch(client: KubeClient) -> None:
    lines = [line async for line in client.stream(ApiRequest(path=PODS), idle=5.0)]
    assert lines == [b"{}"]


async def test_a_renewed_client_certificate_is_shown(
    server: Server, folder: Path, credentials: Credentials
) -> None:
    """Also while the previous connection is open: the API server checks every request."""
    async with KubeClient(credentials) as client:
        await client.get(PODS)
        await watch(client)
        renew(folder, "second", "client.pem", "client.key")
        await client.get(PODS)
        await watch(client)
    assert server.seen == ["first", "first", "second", "second"]


async def test_what_is_written_anew_as_it_was_costs_no_connection(
    server: Server, folder: Path, credentials: Credentials
) -> None:
    """The kubelet writes the authority anew with each token."""
    async with KubeClient(credentials) as client:
        for _ in range(3):
            await client.get(PODS)
            renew(folder, "first")
    assert server.connections == 1


async def test_a_certificate_is_shown_once_its_key_is_there(
    server: Server, folder: Path, credentials: Credentials, caplog: pytest.LogCaptureFixture
) -> None:
    async with KubeClient(credentials) as client:
        renew(folder, "second", "client.pem")
        await client.get(PODS)
        await client.get(PODS)
        assert sum("using the previous ones" in text for text in caplog.messages) == 1
        renew(folder, "second", "client.key")
        await client.get(PODS)
    assert server.seen == ["first", "first", "second"]


@pytest.mark.parametrize("content", [None, "", "-----BEGIN CERTIFICATE-----\nMIIB"])
@pytest.mark.parametrize("name", ["ca.pem", "client.pem", "client.key"])
async def test_files_that_cannot_be_used_for_the_moment_change_nothing(
    server: Server, folder: Path, credentials: Credentials, name: str, content: str | None
) -> None:
    async with KubeClient(credentials) as client:
        (folder / name).unlink()
        if content is not None:
            (folder / name).write_text(content)
        await client.get(PODS)
    assert server.seen == ["first"]


async def test_a_renewed_authority_is_trusted(keys: KeyFolder, folder: Path) -> None:
    server = Server(keys)
    async with server.serving():
        path = kubeconfig(server, folder)
    keys.write("second")
    async with server.serving(), KubeClient(from_kubeconfig(path)) as client:
        with pytest.raises(NotSentError, match="CERTIFICATE_VERIFY_FAILED"):
            await client.get(PODS)
        renew(folder, "second", "ca.pem")
        await client.get(PODS)
        await watch(client)


async def test_a_pod_trusts_the_authority_that_the_kubelet_has_renewed(
    server: Server, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("secret")
    shutil.copy(PAIRS / "second" / "ca.pem", tmp_path / "ca.crt")
    environment = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(server.port)}
    async with KubeClient(in_cluster(environment, tmp_path)) as client:
        with pytest.raises(NotSentError, match="CERTIFICATE_VERIFY_FAILED"):
            await client.get(PODS)
        shutil.copy(PAIRS / "first" / "ca.pem", tmp_path / "ca.crt")
        await client.get(PODS)
    assert server.seen == ["nobody"]


def test_files_are_looked_at_now_and_then(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpushare_core.kube.tls.RENEW_SECONDS", RENEW_SECONDS)
    now = 0.0
    tls = RenewedTls(TlsParts(authority=folder / "ca.pem"), lambda: now)
    before = tls()
    renew(folder, "second", "ca.pem")
    now = RENEW_SECONDS - 0.1
    assert tls() is before
    now = RENEW_SECONDS
    after = tls()
    assert after is not before
    assert after.get_ca_certs() != before.get_ca_certs()


def test_what_stands_between_certificates_may_be_in_any_script(folder: Path) -> None:
    (folder / "ca.pem").write_text(f"\ufeff# Türktrust, 日本\n{pem('first', 'ca.pem')}# é\n")
    assert len(RenewedTls(TlsParts(authority=folder / "ca.pem"))().get_ca_certs()) == 1
