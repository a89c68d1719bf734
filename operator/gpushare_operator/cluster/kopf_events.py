"""kopf as the source of events: every handler only takes over one object and asks for work.

No create, update or delete handlers, timers or daemons: kopf writes nothing to any object.
"""

import random
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

import kopf

from gpushare_core.api.names import GROUP, NODE_PLURAL, POLICY_PLURAL, VERSION
from gpushare_operator.cluster.cache import Kind
from gpushare_operator.desired.names import MANAGED

Json = Mapping[str, Any]
Observer = Callable[[Kind, str | None, Json], None]
"""Gets the type of a watch event (None for an item of kopf's own list) and the object."""

RESOURCES: dict[Kind, tuple[str, str, str]] = {
    Kind.POLICY: (GROUP, VERSION, POLICY_PLURAL),
    Kind.NODE: ("", "v1", "nodes"),
    Kind.SHARE_NODE: (GROUP, VERSION, NODE_PLURAL),
    Kind.DAEMON_SET: ("apps", "v1", "daemonsets"),
    Kind.JOB: ("batch", "v1", "jobs"),
    Kind.POD: ("", "v1", "pods"),
}
OURS = frozenset({Kind.DAEMON_SET, Kind.JOB, Kind.POD})
"""Kinds of which only our own objects are looked at."""

PAGE = 100
LONGEST_PAUSE = 30.0


class EndlessPauses:
    """Growing pauses with jitter, without end: kopf gives up and exits when its pauses run out."""

    def __init__(self, jitter: Callable[[], float] = random.random) -> None:
        self._jitter = jitter

    def __iter__(self) -> Iterator[float]:
        pause = 0.5
        while True:
            yield pause * (0.5 + self._jitter() / 2)
            pause = min(pause * 2, LONGEST_PAUSE)


def configure(settings: kopf.OperatorSettings) -> None:
    """kopf must not write, not give up, not hold whole lists, and not look at others' objects."""
    settings.posting.enabled = False
    settings.peering.standalone = True
    # Otherwise kopf wants to watch all CRDs and namespaces.
    settings.scanning.disabled = True
    settings.networking.error_backoffs = EndlessPauses()
    settings.networking.request_timeout = 60.0
    settings.networking.connect_timeout = 10.0
    settings.watching.chunk_size = PAGE
    settings.queueing.idle_timeout = 0.5
    settings.process.ultimate_exiting_timeout = 20.0
    # Not ours: kopf takes its own finalizer off wherever it sees no need for one.
    settings.persistence.finalizer = f"{GROUP}/kopf"
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=GROUP)
    settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix=GROUP)
    for kind in OURS:
        settings.watching.label_selectors[RESOURCES[kind]] = MANAGED


def follow(registry: kopf.OperatorRegistry, observe: Observer) -> None:
    """Register one handler per kind."""
    for kind, resource in RESOURCES.items():
        kopf.on.event(*resource, registry=registry, id=str(kind))(_handler(kind, observe))


def _handler(kind: Kind, observe: Observer) -> Callable[..., Awaitable[None]]:
    async def handle(event: Any, **_: Any) -> None:
        observe(kind, event["type"], event["object"])

    return handle
