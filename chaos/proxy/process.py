"""The proxy as a process in the network of a local cluster's control plane, and its commands.

Standard input has one line of JSON for each command, standard output one for each response. The process ends
with its standard input, and so with the program that started it.
"""

import asyncio
import itertools
import ssl
import sys
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from chaos.proxy.fault import ActiveFaults, ApiFault
from chaos.proxy.server import ApiProxy
from gpushare_core.kube.credentials import Credentials
from gpushare_core.process.clock import utc_now
from gpushare_localcluster.cluster import API_ADDRESS, API_PORT, SERVICE_ADDRESS, LocalCluster

START_SECONDS = 120.0
COMMAND_SECONDS = 60.0


class ProxyGoneError(Exception):
    """The proxy's process has ended or does not answer."""


class Begin(msgspec.Struct, frozen=True, tag="begin", tag_field="command"):
    number: int
    fault: ApiFault


class End(msgspec.Struct, frozen=True, tag="end", tag_field="command"):
    number: int


class Look(msgspec.Struct, frozen=True, tag="look", tag_field="command"):
    pass


class CountWrites(msgspec.Struct, frozen=True, tag="count-writes", tag_field="command"):
    """Begins to count anew."""


Command = Begin | End | Look | CountWrites
MAX_TOLD = 20


class Answer(msgspec.Struct, frozen=True):
    hits: int = 0
    """Calls and open watches that the fault which ended has hit."""
    writes: dict[str, int] = {}
    """Client and object -> writes since the last count; the most frequent ones."""
    broken_watches: tuple[str, ...] = ()
    """Watches, by client and path, that a fault has broken and that are not open again."""


@dataclass(slots=True)
class ProxyProcess:
    """The commands of one that runs."""

    _process: asyncio.subprocess.Process
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def begin(self, fault: ApiFault) -> int:
        """Returns the number by which it is ended."""
        number = next(self._numbers)
        await self._command(Begin(number, fault))
        return number

    async def end(self, number: int) -> int:
        """Returns how many calls and open watches were hit; 0 when it has ended before."""
        return (await self._command(End(number))).hits

    async def broken_watches(self) -> Sequence[str]:
        """Returns which watches a fault has broken that their programs have not opened again."""
        return (await self._command(Look())).broken_watches

    async def writes(self) -> Mapping[str, int]:
        """Returns how often our programs wrote what since this was asked last: the most frequent ones."""
        return (await self._command(CountWrites())).writes

    async def _command(self, command: Command) -> Answer:
        async with self._turn:
            assert self._process.stdin is not None
            self._process.stdin.write(msgspec.json.encode(command) + b"\n")
            return await self.answer(COMMAND_SECONDS)

    async def answer(self, seconds: float) -> Answer:
        assert self._process.stdout is not None
        try:
            line = await asyncio.wait_for(self._process.stdout.readline(), seconds)
            return msgspec.json.decode(line, type=Answer)
        except (TimeoutError, msgspec.DecodeError, OSError) as error:
            code = self._process.returncode
            raise ProxyGoneError(f"the API proxy does not answer ({error!r}, exit code {code})") from error


@asynccontextmanager
async def proxy_process(cluster: LocalCluster, *, log: Path) -> AsyncIterator[ProxyProcess]:
    """Runs the proxy at the API server's address in the pods' network, which the cluster must have left
    free."""
    command = cluster.control_plane_command(
        [sys.executable, "-m", "chaos.proxy.process", str(cluster.directory)]
    )
    pipe = asyncio.subprocess.PIPE
    with log.open("ab") as errors:
        process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=errors)
    try:
        running = ProxyProcess(process)
        await running.answer(START_SECONDS)
        yield running
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def serve(cluster: LocalCluster) -> None:
    """Serves in this process until its standard input ends."""
    # As the API server does it: with its own certificate, which names this address too.
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(cluster.pki_file("apiserver.crt"), cluster.pki_file("apiserver.key"))
    trusted = ssl.create_default_context(cafile=cluster.pki_file("ca.crt"))
    upstream = Credentials(f"https://{API_ADDRESS}:{API_PORT}", lambda: trusted, lambda: None)
    writes = Counter[str]()
    proxy = ApiProxy(upstream, carried_out=lambda call: writes.update((str(call),)))
    async with proxy.serving(SERVICE_ADDRESS, API_PORT, tls=tls):
        print(msgspec.json.encode(Answer()).decode(), flush=True)
        commands = await standard_input()
        while line := await commands.readline():
            answer = obey(proxy.faults, writes, msgspec.json.decode(line, type=Command))
            print(msgspec.json.encode(answer).decode(), flush=True)


def obey(faults: ActiveFaults, writes: Counter[str], command: Command) -> Answer:
    """Carries out a command. Faults are logged, for people who look for the cause of something."""
    match command:
        case Begin(number, fault):
            faults.begin(number, fault)
            answer = Answer()
        case End(number):
            answer = Answer(faults.end(number))
        case CountWrites():
            answer = Answer(writes=dict(writes.most_common(MAX_TOLD)))
            writes.clear()
            return answer
        case Look():
            return Answer(broken_watches=tuple(map(str, faults.broken_watches())))
    print(utc_now().isoformat(), command, answer, file=sys.stderr, flush=True)
    return answer


async def standard_input() -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


if __name__ == "__main__":
    asyncio.run(serve(LocalCluster(Path(sys.argv[1]))))
