"""Only who has a certificate of the right authority is heard; files are read again when they change."""

import asyncio
import contextlib
import shutil
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from gpushare_extender.http.listener import ListenerLimits, listening, request_read
from gpushare_extender.http.tls import GONE_SECONDS, FilesGoneError, ServerTls, TlsFiles

PAIRS = Path(__file__).resolve().parents[2] / "data" / "extender"
"""Two authorities, each with a server and a client; valid for a hundred years."""


def caller_tls(authority: str = "first", *, client: str = "first") -> ssl.SSLContext:
    """Trusts ``authority``; presents the certificate that the authority ``client`` gave, if one is named."""
    context = ssl.create_default_context(cafile=PAIRS / authority / "ca.pem")
    if client:
        context.load_cert_chain(PAIRS / client / "client.pem", PAIRS / client / "client.key")
    return context


class KeyFolder:
    """The extender's files, as hostctl leaves them on a control-plane node."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files = TlsFiles(path / "server.pem", path / "server.key", path / "ca.pem")

    def write(self, authority: str, *names: str) -> None:
        """Puts the files of ``authority`` there, each in one step."""
        for name in names or ("server.pem", "server.key", "ca.pem"):
            shutil.copy(PAIRS / authority / name, self.path / "new")
            (self.path / "new").rename(self.path / name)


@pytest.fixture
def keys(tmp_path: Path) -> KeyFolder:
    folder = KeyFolder(tmp_path)
    folder.write("first")
    return folder


async def answer(request: web.Request) -> web.Response:
    await request.read()
    request_read(request)
    return web.Response(text="heard")


@contextlib.asynccontextmanager
async def serving(tls: ServerTls | None, limits: ListenerLimits | None = None) -> AsyncIterator[int]:
    app = web.Application()
    app.router.add_post("/", answer)
    async with listening(app, host="127.0.0.1", port=0, tls=tls, drain=0.1, limits=limits) as port:
        yield port


async def call(port: int, tls: ssl.SSLContext | None) -> str:
    scheme = "https" if tls else "http"
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{scheme}://127.0.0.1:{port}/", ssl=tls or False, data=b"x") as response,
    ):
        return await response.text()


async def test_a_caller_with_our_certificate_is_heard(keys: KeyFolder) -> None:
    async with serving(ServerTls(keys.files)) as port:
        assert await call(port, caller_tls()) == "heard"


@pytest.mark.parametrize(
    "tls",
    [
        pytest.param(None, id="plain HTTP"),
        pytest.param(caller_tls(client=""), id="no certificate"),
        pytest.param(caller_tls(client="second"), id="a certificate of another authority"),
    ],
)
async def test_nobody_else_is(keys: KeyFolder, tls: ssl.SSLContext | None) -> None:
    async with serving(ServerTls(keys.files)) as port:
        with pytest.raises((aiohttp.ClientError, OSError)):
            await call(port, tls)
        assert await call(port, caller_tls()) == "heard"


async def test_a_new_key_pair_and_authority_serve_without_a_restart(keys: KeyFolder) -> None:
    async with serving(ServerTls(keys.files)) as port:
        assert await call(port, caller_tls()) == "heard"
        keys.write("second")
        assert await call(port, caller_tls("second", client="second")) == "heard"
        with pytest.raises((aiohttp.ClientError, OSError)):
            await call(port, caller_tls("second", client="first"))


async def test_while_only_half_is_replaced_the_pair_before_serves(keys: KeyFolder) -> None:
    tls = ServerTls(keys.files)
    async with serving(tls) as port:
        assert await call(port, caller_tls()) == "heard"
        keys.write("second", "server.pem")
        assert await call(port, caller_tls()) == "heard"
        assert "cannot use the key pair" in tls.problem
        keys.write("second", "server.key", "ca.pem")
        assert await call(port, caller_tls("second", client="second")) == "heard"
        assert tls.problem == ""


async def test_the_files_are_waited_for(tmp_path: Path) -> None:
    keys = KeyFolder(tmp_path)
    tls = ServerTls(keys.files)
    async with serving(tls) as port:
        with pytest.raises((aiohttp.ClientError, OSError)):
            await call(port, caller_tls())
        assert "No such file" in tls.problem
        keys.write("first")
        assert await call(port, caller_tls()) == "heard"


async def test_key_and_certificate_may_be_one_file(keys: KeyFolder) -> None:
    both = keys.path / "both.pem"
    both.write_bytes(keys.files.key.read_bytes() + keys.files.certificate.read_bytes())
    tls = ServerTls(TlsFiles(both, both, keys.files.client_authority))
    async with serving(tls) as port:
        assert await call(port, caller_tls()) == "heard"


async def test_nobody_is_served_with_keys_that_were_removed(keys: KeyFolder) -> None:
    """As after a restore, while the extender still runs."""
    tls = ServerTls(keys.files)
    async with serving(tls) as port:
        assert await call(port, caller_tls()) == "heard"
        for path in keys.path.iterdir():
            path.unlink()
        with pytest.raises((aiohttp.ClientError, OSError)):
            await call(port, caller_tls())
        assert "was removed" in tls.problem
        keys.write("second")
        assert await call(port, caller_tls("second", client="second")) == "heard"


async def test_it_ends_when_the_files_that_were_there_are_gone(keys: KeyFolder) -> None:
    """As after a restore: the folder that the next install makes is another one than what is mounted."""
    looks: list[float] = []

    async def sleep(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 2:
            tls.context()
        if len(looks) == 4:
            shutil.rmtree(keys.path)

    tls = ServerTls(keys.files, sleep)
    with pytest.raises(FilesGoneError, match="was removed"):
        await tls.end_when_gone()
    assert sum(looks) >= GONE_SECONDS, "a container that starts again would make the folder on the host anew"


class Dialer:
    """Opens connections and keeps them."""

    def __init__(self) -> None:
        self.readers: list[asyncio.StreamReader] = []
        self._writers: list[asyncio.StreamWriter] = []

    async def dial(self, port: int, data: bytes = b"", *, count: int = 1) -> None:
        for _ in range(count):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(data)
            self.readers.append(reader)
            self._writers.append(writer)

    async def closed(self, *, within: float = 3.0, count: int = 0) -> int:
        """Returns how many of the oldest ``count`` connections the server breaks off in time."""
        tasks = [asyncio.create_task(reader.read()) for reader in self.readers[: count or None]]
        done, pending = await asyncio.wait(tasks, timeout=within)
        for task in pending:
            task.cancel()
        assert all(isinstance(task.exception(), ConnectionError | None) for task in done)
        return len(done)

    async def close(self) -> None:
        for writer in self._writers:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


@pytest.fixture
async def dialer() -> AsyncIterator[Dialer]:
    dialer = Dialer()
    yield dialer
    await dialer.close()


HALF_SENT = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"


class TestLimits:
    @pytest.mark.parametrize("data", [HALF_SENT, b"POST / HT"], ids=["body", "headers"])
    async def test_half_sent_requests_are_not_kept(self, dialer: Dialer, data: bytes) -> None:
        async with serving(None, ListenerLimits(read=0.2)) as port:
            await dialer.dial(port, data, count=200)
            assert await dialer.closed() == 200
            assert await call(port, None) == "heard"

    async def test_a_handshake_that_does_not_go_on_is_broken_off(
        self, keys: KeyFolder, dialer: Dialer
    ) -> None:
        async with serving(ServerTls(keys.files), ListenerLimits(handshake=0.2)) as port:
            await dialer.dial(port)
            assert await dialer.closed() == 1

    @pytest.mark.parametrize("secure", [False, True], ids=["plain", "shaking hands"])
    async def test_the_oldest_connection_without_a_request_makes_room(
        self, keys: KeyFolder, dialer: Dialer, *, secure: bool
    ) -> None:
        tls = ServerTls(keys.files) if secure else None
        async with serving(tls, ListenerLimits(waiting=3)) as port:
            await dialer.dial(port, count=5)
            assert await dialer.closed(count=2) == 2
            assert await call(port, caller_tls() if secure else None) == "heard"

    async def test_connections_in_use_stay_and_are_no_more_than_so_many(self) -> None:
        async with serving(None, ListenerLimits(served=1)) as port, aiohttp.ClientSession() as session:
            url = f"http://127.0.0.1:{port}/"
            async with session.post(url, data=b"x") as response:
                assert await response.text() == "heard"
            with pytest.raises(aiohttp.ClientError):
                await call(port, None)
            async with session.post(url, data=b"x") as response:
                assert await response.text() == "heard"
