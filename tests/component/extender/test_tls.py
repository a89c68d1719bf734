"""Only clients with a certificate of the right authority are served; changed files are read again."""

import contextlib
import shutil
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from tests.fakes.extender_caller import call, heard_application
from tests.fakes.extender_keys import KeyFolder, caller_tls
from tests.fakes.open_port import listening

from gpushare_extender.transport.tls import GONE_SECONDS, FilesGoneError, ServerTls, TlsFiles


@pytest.fixture
def keys(tmp_path: Path) -> KeyFolder:
    folder = KeyFolder(tmp_path)
    folder.write("first")
    return folder


@contextlib.asynccontextmanager
async def serving(tls: ServerTls) -> AsyncIterator[int]:
    async with listening(heard_application(), host="127.0.0.1", port=0, tls=tls, drain=0.1) as port:
        yield port


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
