"""Calls that take a busy API server longer than the 34 s after which it gives up: they are made again."""

from collections.abc import Callable
from http import HTTPStatus
from typing import TypeVar

from tests.e2e.observe import PATIENCE

from gpushare_core.kube.errors import ApiError
from gpushare_localcluster.errors import LocalClusterError
from gpushare_localcluster.waiting import wait_until

T = TypeVar("T")


def until_decided(call: Callable[[], T]) -> T:
    """Returns what ``call`` returns, and raises what it raises but for the API server's timeouts.

    Whoever makes an object may have made it by a call that timed out.
    """
    answers: list[T] = []

    def is_decided() -> bool:
        try:
            answers.append(call())
        except (LocalClusterError, ApiError) as error:
            if is_late(error):
                return False
            raise
        return True

    wait_until("the API server has decided in time", is_decided, timeout=3 * PATIENCE)
    return answers[-1]


def is_late(error: LocalClusterError | ApiError) -> bool:
    """Whether the API server gave up; ``LocalClusterError`` has what kubectl prints of that."""
    if isinstance(error, ApiError):
        return error.status == HTTPStatus.GATEWAY_TIMEOUT
    return "Error from server (Timeout)" in str(error)
