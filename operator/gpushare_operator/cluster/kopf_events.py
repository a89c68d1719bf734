"""kopf as the source of events: every handler only takes over one object and asks for work.

No create, update or delete handlers, timers or daemons: kopf writes nothing to any object.
"""

import random
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import kopf

from gpushare_core.api.names import GROUP
from gpushare_core.json_object import Json
from gpushare_core.kube.backoff import Backoff, Jitter
from gpushare_operator.cluster.kinds import KINDS, PAGE, Kind

Observer = Callable[[Kind[Any], str | None, Json], None]
"""Gets the type of a watch event (None for an item of kopf's own list) and the object."""


class EndlessBackoff:
    """Delays without end, in seconds: kopf gives up and exits when its delays run out."""

    def __init__(self, jitter: Jitter = random.random) -> None:
        self._jitter = jitter

    def __iter__(self) -> Iterator[float]:
        backoff = Backoff(first=0.5, most=30.0, jitter=self._jitter)
        while True:
            yield backoff.next_delay()


def configure(settings: kopf.OperatorSettings) -> None:
    """Keeps kopf from writing, giving up, holding whole lists and looking at others' objects."""
    settings.posting.enabled = False
    settings.peering.standalone = True
    # Otherwise kopf wants to watch all CRDs and namespaces.
    settings.scanning.disabled = True
    settings.networking.error_backoffs = EndlessBackoff()
    settings.networking.request_timeout = 60.0
    settings.networking.connect_timeout = 10.0
    settings.watching.chunk_size = PAGE
    settings.queueing.idle_timeout = 0.5
    settings.process.ultimate_exiting_timeout = 20.0
    # Not ours: kopf takes its own finalizer off wherever it sees no need for one.
    settings.persistence.finalizer = f"{GROUP}/kopf"
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=GROUP)
    settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix=GROUP)
    for kind in KINDS:
        if kind.label_selector:
            settings.watching.label_selectors[kind.resource] = kind.label_selector


def register_handlers(registry: kopf.OperatorRegistry, observe: Observer) -> None:
    """Registers one handler per kind."""
    for kind in KINDS:
        kopf.on.event(*kind.resource, registry=registry, id=kind.plural)(_handler(kind, observe))


def _handler(kind: Kind[Any], observe: Observer) -> Callable[..., Awaitable[None]]:
    async def handle(event: Any, **_: Any) -> None:
        observe(kind, event["type"], event["object"])

    return handle
