"""Calls that take a busy API server longer than the 34 s after which it gives up: they are made again."""

from collections.abc import Callable
from typing import TypeVar

from tests.e2e.observe import PATIENCE

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
        except LocalClusterError as error:
            if "Error from server (Timeout)" in str(error):
                return False
            raise
        return True

    wait_until("the API server has decided in time", is_decided, timeout=3 * PATIENCE)
    return answers[-1]
