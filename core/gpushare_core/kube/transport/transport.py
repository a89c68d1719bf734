"""What every way to the API server offers, and how it fails."""

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from gpushare_core.kube.request import ApiRequest
from gpushare_core.kube.response import HttpResponse


class NotConnectedError(Exception):
    """No connection came about: nothing was sent."""


class BrokenError(ConnectionError):
    """The connection ended, or brought something that is not HTTP, before the response was complete."""


class RefusedStreamError(Exception):
    """The server answered a watch with something else than a stream."""

    def __init__(self, response: HttpResponse) -> None:
        super().__init__(f"status {response.status}")
        self.response = response


Headers = Sequence[tuple[str, str]]
"""Those of one request, with its token. A name may come several times."""


class Transport(Protocol):
    """Use from one event loop."""

    async def exchange(self, request: ApiRequest, headers: Headers, *, seconds: float) -> HttpResponse:
        """Returns the response, whatever its status. A GET is sent once more where a kept connection ends.

        Raises:
            NotConnectedError, ValueError: nothing was sent.
            OSError: no complete response came within ``seconds``; whether the server has acted is unknown.
        """

    def stream(
        self, request: ApiRequest, headers: Headers, *, connect_seconds: float, idle: float
    ) -> AsyncGenerator[bytes, None]:
        """Yields the lines of a watch until the server ends it.

        Raises:
            RefusedStreamError: the status is not 200.
            OSError, ValueError: the connection broke, or no line came for ``idle`` seconds.
            WatchEventTooLargeError: a line is too long for an event.
        """

    async def close(self) -> None:
        """Ends the connections that nobody uses; the others end with their requests."""
