"""Probes and metrics of the extender. They also have a port of their own, because the kubelet and Prometheus
present no client certificate."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry

from gpushare_core.health_server import Page, Response, health_pages
from gpushare_core.process.metrics import new_registry
from gpushare_core.text.printable import printable
from gpushare_extender import PROGRAM
from gpushare_extender.cluster.watchers import DEAD_SECONDS, WatchHealth
from gpushare_extender.transport.messages import Handler, json_response
from gpushare_extender.transport.tls import ServerTls
from gpushare_extender.verbs.routes import Route


@dataclass(frozen=True, slots=True)
class HealthApi:
    """Pages for probes and metrics; none of them names a pod or a node."""

    watches: tuple[WatchHealth, ...]
    tls: ServerTls | None = None
    unavailable: dict[str, str] = field(default_factory=dict)
    """Address to listen on -> why it is not available."""
    former: frozenset[str] = frozenset()
    """Addresses from before a change of the port, which are not needed to be ready: often the port was
    changed because another program has it."""
    registry: CollectorRegistry = field(default_factory=lambda: new_registry(PROGRAM))

    def pages(self) -> Mapping[str, Page]:
        return health_pages(liveness=self.healthz, readiness=self.readyz, registry=self.registry)

    def routes(self) -> list[Route]:
        """Returns the same pages for the port that demands a client certificate."""
        return [Route("GET", path, _handler(page)) for path, page in self.pages().items()]

    async def healthz(self) -> Response:
        """503 when a watch has been silent for so long that only a restart can help."""
        silence = {watch.collection: round(watch.silence, 1) for watch in self.watches}
        dead = any(watch.silence > DEAD_SECONDS for watch in self.watches)
        return json_response({"ok": not dead, "secondsSinceLastSign": silence}, status=503 if dead else 200)

    async def readyz(self) -> Response:
        message = printable(self.not_listed() or self._not_reachable() or self._not_listening())
        return json_response({"ok": not message, "missing": message}, status=503 if message else 200)

    def not_listed(self) -> str:
        """Returns what is not read yet, or an empty text. With an incomplete ledger a response could
        over-commit a card."""
        unlisted = [watch.collection for watch in self.watches if not watch.listed]
        return f"the extender has not read all {' and '.join(unlisted)} yet" if unlisted else ""

    def _not_reachable(self) -> str:
        """Returns why kube-scheduler cannot connect yet, or an empty text."""
        return self.tls.problem if self.tls and self.tls.context() is None else ""

    def _not_listening(self) -> str:
        return "; ".join(why for address, why in self.unavailable.items() if address not in self.former)


def _handler(page: Page) -> Handler:
    return lambda _: page()
