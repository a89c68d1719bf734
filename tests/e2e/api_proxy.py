"""A way to the API server that can be cut, and that remembers what was written through it."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

import yaml
from chaos.proxy.call import Call
from chaos.proxy.fault import ApiFault, Manner
from chaos.proxy.server import ApiProxy

from gpushare_core.kube.credentials import Credentials, from_kubeconfig


@dataclass(frozen=True, slots=True)
class Write:
    """A write that the API server carried out; seconds of ``time.monotonic``."""

    method: str
    path: str
    answered: float


@dataclass
class OwnProxy:
    """Chaos's proxy in a thread: plain HTTP to the client, and TLS as ``credentials`` to the API server."""

    credentials: Credentials
    writes: list[Write] = field(default_factory=list)
    url: str = ""
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    _proxy: ApiProxy = field(init=False)

    def cut(self) -> None:
        """From now on nothing comes through, in either direction, and nobody is told."""
        silent = ApiFault(manner=Manner.SILENT)
        self._loop.call_soon_threadsafe(self._proxy.faults.begin, 0, silent)

    def kubeconfig(self, folder: Path) -> Path:
        """Writes a kubeconfig that leads here, and returns its path."""
        path = folder / f"kubeconfig-{self.url.rpartition(':')[2]}"
        content = {
            "current-context": "it",
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
            "clusters": [{"name": "it", "cluster": {"server": self.url}}],
            "users": [{"name": "it", "user": {"token": "none"}}],
        }
        path.write_text(yaml.safe_dump(content))
        return path

    @contextmanager
    def running(self) -> Iterator["OwnProxy"]:
        started, ended = threading.Event(), asyncio.Event()
        serving = self._serve(started, ended)
        thread = threading.Thread(target=lambda: self._loop.run_until_complete(serving), daemon=True)
        thread.start()
        assert started.wait(240), "the proxy does not start"
        try:
            yield self
        finally:
            self._loop.call_soon_threadsafe(ended.set)
            thread.join(60)
            self._loop.close()

    async def _serve(self, started: threading.Event, ended: asyncio.Event) -> None:
        self._proxy = ApiProxy(self.credentials, logs_in=True, carried_out=self._remember)
        async with self._proxy.serving("127.0.0.1", 0):
            self.url = self._proxy.url
            started.set()
            await ended.wait()

    def _remember(self, call: Call) -> None:
        self.writes.append(Write(call.verb, call.path, monotonic()))


@contextmanager
def api_proxy(kubeconfig: Path) -> Iterator[OwnProxy]:
    """A proxy that runs in a thread of its own."""
    with OwnProxy(from_kubeconfig(kubeconfig)).running() as proxy:
        yield proxy
