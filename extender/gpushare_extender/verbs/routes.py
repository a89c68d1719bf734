"""Which method and path is answered by what."""

import logging
from collections.abc import Awaitable, Iterable
from http import HTTPStatus
from typing import NamedTuple

from gpushare_extender.transport.exchange import Answer, Answering, Call, error_answer

_log = logging.getLogger(__name__)


class Route(NamedTuple):
    """``path`` may end with a slash: then whatever follows it, in one part, is ``Call.name``."""

    method: str
    path: str
    answering: Answering


class Routes:
    """Every one is found by its path: two look-ups, however many there are."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._by_path: dict[str, dict[str, Answering]] = {}
        self._below_path: dict[str, dict[str, Answering]] = {}
        for method, path, answering in routes:
            table = self._below_path if path.endswith("/") else self._by_path
            table.setdefault(path, {})[method] = answering

    def answer(self, call: Call) -> Answer | Awaitable[Answer]:
        """Returns what the route of ``call`` answers; 404, 405 and 500 are told as JSON.

        A defect of ours must not break the connection: others are answered on it.
        """
        answering = self._found(call)
        if isinstance(answering, Answer):
            return answering
        try:
            answer = answering(call)
        except Exception as error:
            return _defect(call, error)
        return answer if isinstance(answer, Answer) else _later(call, answer)

    def _found(self, call: Call) -> Answering | Answer:
        methods = self._by_path.get(call.path) or self._below(call.path)
        if methods is None:
            return _refusal(HTTPStatus.NOT_FOUND)
        answering = methods.get("GET" if call.method == "HEAD" else call.method)
        return answering or _refusal(HTTPStatus.METHOD_NOT_ALLOWED)

    def _below(self, path: str) -> dict[str, Answering] | None:
        folder, _, name = path.rpartition("/")
        return self._below_path.get(f"{folder}/") if name else None


async def _later(call: Call, answer: Awaitable[Answer]) -> Answer:
    try:
        return await answer
    except Exception as error:
        return _defect(call, error)


def _defect(call: Call, error: Exception) -> Answer:
    _log.error("%s %s failed", call.method, call.path, exc_info=error)
    return error_answer(f"internal error of the extender: {error!r}", 500)


def _refusal(status: HTTPStatus) -> Answer:
    return error_answer(status.phrase, status)
