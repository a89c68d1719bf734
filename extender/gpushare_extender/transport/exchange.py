"""A request and its answer, by whichever HTTP they come."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

import msgspec

from gpushare_core import health_server
from gpushare_core.text.printable import printable

ENCODER = msgspec.json.Encoder()

Answer = health_server.Response


@dataclass(frozen=True, slots=True)
class Call:
    """A request that has come in full. ``path``: as it was sent, without what follows a question mark."""

    method: str
    path: str
    content: bytes = b""
    port: int = 0
    """Where it came in."""
    client_authenticated: bool = False
    """Whether who sent it has a certificate of our authority."""

    @property
    def name(self) -> str:
        """The last part of the path."""
        return unquote(self.path.rpartition("/")[2])


Answering = Callable[[Call], Answer | Awaitable[Answer]]
"""Answers at once where nothing has to be waited for: a task of its own costs more than many an answer. Never
raises but for a defect."""


def json_answer(answer: Any, *, status: int = HTTPStatus.OK) -> Answer:
    """Returns it as a whole: a chunked answer costs kube-scheduler its connection."""
    return Answer(ENCODER.encode(answer), status)


def error_answer(message: str, status: int) -> Answer:
    return json_answer({"error": printable(message)}, status=status)
