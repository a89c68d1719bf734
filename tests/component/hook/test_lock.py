"""Two processes that ask at the same time: one counts after the other, or both would get what one may have.

The hook under test stops at points (``hook/kernel/pause.h``): the order of things is not left to chance.
"""

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.component.hook.conftest import MakeContainer
from tests.component.hook.share import SHARE
from tests.fakes.cuda_container import Container
from tests.fakes.cuda_driver import GIB, CudaDriver
from tests.fakes.cuda_user import OUT, OUT_OF_MEMORY
from tests.fakes.hook_library import compiled_hook

from gpushare_localcluster.waiting import wait_until

PAUSE = '-DHOOK_PAUSE="/opt/pause"'
NO_LOCK = "-DHOOK_MUTANT_NO_LOCK"


@dataclass(frozen=True, slots=True)
class Points:
    """Where processes of a container are stopped."""

    folder: Path

    def stop_at(self, point: str) -> None:
        for reached in self.folder.glob(f"{point}.*"):
            reached.unlink()
        (self.folder / point).touch()

    def go_on(self, point: str) -> None:
        (self.folder / point).unlink()

    def reached(self, point: str) -> int:
        """How many processes came there since."""
        return len(list(self.folder.glob(f"{point}.*")))

    def until(self, what: str, probe: Callable[[], bool]) -> None:
        wait_until(what, probe, interval=0.002)


def begin(make_container: MakeContainer, *flags: str) -> tuple[Container, Points]:
    container = make_container(hook=compiled_hook(PAUSE, *flags))
    points = Points(container.folder / "opt/pause")
    points.folder.mkdir()
    return container, points


def take_at_once(container: Container, points: Points) -> list[int]:
    """Returns what two processes are answered: the second asks when the first has summed up, and not yet
    written what it takes."""
    users = [container.user("linked").open(), container.user("v2").open()]
    points.stop_at("summed")
    first, second = users
    first.begin("cuMemAlloc_v2", OUT, 2 * GIB)
    points.until("the first has summed up", lambda: points.reached("summed") == 1)
    second.begin("cuMemAlloc_v2", OUT, 2 * GIB)
    points.until(
        "the second waits, or has summed up, too",
        lambda: points.reached("waiting") > 0 or points.reached("summed") == 2,
    )
    points.go_on("summed")
    return [user.finish().code for user in users]


def test_who_asks_second_waits_and_is_refused(make_container: MakeContainer, driver: CudaDriver) -> None:
    assert take_at_once(*begin(make_container)) == [0, OUT_OF_MEMORY]
    assert driver.highest() <= SHARE


def test_without_the_lock_both_would_get_it(make_container: MakeContainer, driver: CudaDriver) -> None:
    """So this module finds a hook without lock."""
    assert take_at_once(*begin(make_container, NO_LOCK)) == [0, 0]
    assert driver.highest() > SHARE


@pytest.mark.parametrize("point", ["lock", "summed"])
def test_a_process_killed_at_a_point_holds_up_nobody(point: str, make_container: MakeContainer) -> None:
    container, points = begin(make_container)
    killed, other = container.user().open(), container.user().open()
    points.stop_at(point)
    killed.begin("cuMemAlloc_v2", OUT, 2 * GIB)
    points.until("it is there", lambda: points.reached(point) == 1)
    killed.kill()
    points.go_on(point)
    other.allocate(2 * GIB)


def test_a_process_that_is_stopped_with_the_lock_holds_up_nobody_for_long(
    make_container: MakeContainer,
) -> None:
    """Others go on without it after a second, rather than hang."""
    container, points = begin(make_container)
    stopped, other = container.user().open(), container.user().open()
    points.stop_at("summed")
    stopped.begin("cuMemAlloc_v2", OUT, GIB)
    points.until("it has the lock", lambda: points.reached("summed") == 1)
    os.kill(stopped.pid, signal.SIGSTOP)
    points.go_on("summed")
    other.allocate(GIB)
    os.kill(stopped.pid, signal.SIGCONT)
    assert stopped.finish().code == 0
