"""Programs started as processes of their own, beside stand-ins for what they talk to."""

import asyncio
import base64
import json
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp

from gpushare_core.text.json_object import Json
from gpushare_hostctl.decide.scheduler import key_pairs

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 120.0
"""For any of them, on a machine that has other work."""
NODES_A_SECOND = 50.0
"""So many, with their pods, the stand-in for the API server makes up at least."""
STOP_SECONDS = 20.0
POLL_SECONDS = 0.02


class ProgramEndedError(Exception):
    """A program ended before it did what was waited for; the text has its last words."""


def script(name: str) -> Path:
    """Returns where a console script of ours is: in the environment that this runs in."""
    return Path(sys.prefix) / "bin" / name


@asynccontextmanager
async def program(
    command: str | Path, *arguments: object, log: Path, announces: bool = False, killed: bool = False
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Runs ``command`` while entered; what it logs goes to ``log``. ``announces``: it prints what is to be
    read. ``killed``: nothing is to be seen of how it stops."""
    with log.open("ab") as file:
        process = await asyncio.create_subprocess_exec(
            command,
            *map(str, arguments),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE if announces else file,
            stderr=file,
            cwd=ROOT,
        )
    try:
        yield process
    finally:
        if killed and process.returncode is None:
            process.kill()
        await _end(process)


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        await asyncio.wait_for(process.wait(), STOP_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()


@asynccontextmanager
async def api_server(folder: Path, *, nodes: int = 0, pods_per_node: int = 0) -> AsyncIterator[Path]:
    """Runs the stand-in for the API server. Yields a kubeconfig for it, once it has all its objects."""
    size = ("--nodes", nodes, "--pods-per-node", pods_per_node)
    log = folder / "api-server.log"
    async with program(
        sys.executable, "-m", "bench.peers.api_server", *size, log=log, announces=True
    ) as process:
        assert process.stdout is not None
        async with asyncio.timeout(START_SECONDS + nodes / NODES_A_SECOND):
            line = await process.stdout.readline()
        if not line:
            raise ProgramEndedError(f"the stand-in for the API server ended: {last_words(log)}")
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(json.dumps(kubeconfig_for(**json.loads(line))))
        yield kubeconfig


def kubeconfig_for(*, host: str, port: int) -> dict[str, object]:
    """Returns what programs read: JSON is YAML, too.

    It names an authority, as every cluster has one: without, all 140 of the system are loaded, 1.3 MiB.
    """
    authority = key_pairs.for_pod(datetime.now(UTC)).files()[key_pairs.TRUSTED_FILE]
    cluster = {
        "server": f"http://{host}:{port}",
        "certificate-authority-data": base64.b64encode(authority).decode(),
    }
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "bench",
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
        "clusters": [{"name": "bench", "cluster": cluster}],
        "users": [{"name": "bench", "user": {"token": "bench"}}],
    }


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


async def while_running(
    process: asyncio.subprocess.Process, wait: Coroutine[Any, Any, None], log: Path
) -> None:
    """Returns when ``wait`` does.

    Raises:
        ProgramEndedError: the program did not live so long.
    """
    waiting, ended = asyncio.create_task(wait), asyncio.create_task(process.wait())
    try:
        await asyncio.wait([waiting, ended], return_when=asyncio.FIRST_COMPLETED)
        if not waiting.done():
            raise ProgramEndedError(f"it ended with {process.returncode}: {last_words(log)}")
        await waiting
    finally:
        waiting.cancel()
        ended.cancel()


async def until_answer(
    process: asyncio.subprocess.Process,
    url: str,
    log: Path,
    *,
    is_right: Callable[[str], bool] = lambda _text: True,
    seconds: float = START_SECONDS,
) -> None:
    """Returns once ``url`` is answered with 200, and rightly.

    Raises:
        ProgramEndedError: the program did not live so long.
        TimeoutError: it did not answer in time.
    """
    deadline = time.monotonic() + seconds
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session:
        while not await _answers(session, url, is_right):
            if process.returncode is not None:
                raise ProgramEndedError(f"it ended with {process.returncode}: {last_words(log)}")
            if time.monotonic() > deadline:
                raise TimeoutError(f"{url} was not answered within {seconds:g} s: {last_words(log)}")
            await asyncio.sleep(POLL_SECONDS)


async def _answers(session: aiohttp.ClientSession, url: str, is_right: Callable[[str], bool]) -> bool:
    try:
        async with session.get(url) as answer:
            return answer.status == 200 and is_right(await answer.text())
    except (aiohttp.ClientError, TimeoutError, OSError):
        return False


async def seconds_to_end(name: str, *arguments: str, seconds: float = START_SECONDS) -> float:
    """Returns how long a console script of ours runs that ends by itself.

    Raises:
        ProgramEndedError: it failed.
        TimeoutError: it did not end in time.
    """
    begun = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        script(name),
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        cwd=ROOT,
    )
    try:
        code = await asyncio.wait_for(process.wait(), seconds)
    except TimeoutError:
        await _end(process)
        raise
    if code:
        raise ProgramEndedError(f"{name} ended with {code}")
    return time.perf_counter() - begun


async def printed_json(module: str, *arguments: object, log: Path, deadline: float) -> Json:
    """Returns what a module of the benchmark prints: its last line, which is JSON.

    Raises:
        ProgramEndedError: it failed, or printed something else.
        TimeoutError: it was not done in so many seconds.
    """
    command = (sys.executable, "-m", module)
    async with program(*command, *arguments, log=log, announces=True) as process:
        assert process.stdout is not None
        try:
            async with asyncio.timeout(deadline):
                printed = await process.stdout.read()
                code = await process.wait()
        except TimeoutError:
            raise TimeoutError(f"{module} was not done after {deadline:g} s") from None
    if code:
        raise ProgramEndedError(f"{module} ended with {code}: {last_words(log)}")
    return json_of(printed.decode(errors="replace"), module)


def json_of(printed: str, module: str) -> Json:
    """Raises ``ProgramEndedError`` where the last line is none."""
    last = ["", *printed.strip().splitlines()][-1]
    try:
        found: Json = json.loads(last)
    except ValueError:
        raise ProgramEndedError(f"{module} printed no figures, but {last!r}") from None
    return found


def last_words(log: Path) -> str:
    """Returns what the last line says that a program logged."""
    lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    return message_of(lines[-1]) if lines else "it said nothing"


def message_of(line: str) -> str:
    """Returns the message of a line of the programs' logs; of any other text all of it."""
    try:
        return str(json.loads(line)["message"])
    except (ValueError, TypeError, LookupError):
        return line
