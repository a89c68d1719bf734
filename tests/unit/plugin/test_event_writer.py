"""Events on pods: each is logged, and the round does not wait for an API server that is away."""

import asyncio
import logging
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_plugin.cluster.event_writer import EventWriter
from gpushare_plugin.decide.held.pod_events import PodEvent
from gpushare_plugin.decide.held.pods import PodName

NOW = datetime(2026, 11, 22, tzinfo=UTC)
PODS = [PodEvent(pod=PodName("default", name), uid=name, reason="Told", note=f"to {name}") for name in "abcd"]


@dataclass(slots=True)
class Server:
    """Refuses every Event with ``error``."""

    error: Exception
    asked: list[str] = field(default_factory=list)

    async def create(self, _path: str, body: Any) -> None:
        self.asked.append(body["regarding"]["name"])
        raise self.error


def written(error: Exception) -> list[str]:
    server = Server(error)
    writer = EventWriter(server, "gpu-1", now=lambda: NOW)  # type: ignore[arg-type]
    asyncio.run(writer.write(PODS))
    return server.asked


@pytest.fixture(autouse=True)
def told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


def test_an_event_that_is_refused_keeps_no_other_from_being_written() -> None:
    assert written(ApiError(403, "Forbidden", "no")) == ["a", "b", "c", "d"]


def test_of_an_api_server_that_is_away_one_event_is_enough(caplog: pytest.LogCaptureFixture) -> None:
    assert written(UnreachableError("it is away")) == ["a"]
    assert [note for note in ("to a", "to b", "to c", "to d") if f"Told: {note}" in caplog.text] == [
        "to a",
        "to b",
        "to c",
        "to d",
    ]
