"""Ends a program after any of the calls by which it changes files, as a power cut does."""

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gpushare_hostctl.host import system_calls

TORN = b"tor"
"""What is in a file at whose creation the power went."""

_CALLS = (
    "mkdir",
    "rmdir",
    "unlink",
    "rename",
    "replace",
    "chmod",
    "fchmod",
    "chown",
    "fchown",
    "setxattr",
)


class PowerLossError(BaseException):
    """The program ends here; nothing that it does on the way out has an effect any more."""


class Power:
    """Counts the calls that change files, and is lost after the one with the number ``lost_after``."""

    def __init__(self, *, lost_after: int | None = None) -> None:
        self.calls = 0
        self._lost_after = lost_after

    @property
    def is_lost(self) -> bool:
        return self._lost_after is not None and self.calls >= self._lost_after

    def counting(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            if self.is_lost:
                raise PowerLossError
            result = call(*arguments, **options)
            self.calls += 1
            if self.is_lost:
                raise PowerLossError
            return result

        return counted

    def opening(self, open_file: Callable[..., int]) -> Callable[..., int]:
        """Counts only what creates a file; the power that goes then leaves it torn."""

        def create(*arguments: Any, **options: Any) -> int:
            descriptor = open_file(*arguments, **options)
            if self._lost_after == self.calls + 1:
                os.write(descriptor, TORN)
            return descriptor

        counted_create = self.counting(create)

        def opened(path: Any, flags: int, *arguments: Any, **options: Any) -> int:
            call = counted_create if flags & os.O_CREAT else open_file
            descriptor: int = call(path, flags, *arguments, **options)
            return descriptor

        return opened


@contextlib.contextmanager
def powered(*, lost_after: int | None = None) -> Iterator[Power]:
    """Has every change of a file counted while entered, and the power lost after the given one."""
    power = Power(lost_after=lost_after)
    with pytest.MonkeyPatch.context() as patch:
        for name in _CALLS:
            patch.setattr(os, name, power.counting(getattr(os, name)))
        patch.setattr(os, "open", power.opening(os.open))
        patch.setattr(system_calls, "exchange", power.counting(system_calls.exchange))
        yield power
