"""What is left after the last policy: what goes by itself is waited for, and nothing else."""

from collections.abc import Awaitable, Callable

import pytest
from chaos.teardown import lasting
from tests.fakes.extender_clock import FakeClock

from gpushare_core.residue import KUBELET_SECONDS, Residue

POD = Residue("Pod gpushare-system/restore", "it goes with its owner", passes=True)
JOB = Residue("Job gpushare-system/restore", "the operator deletes it")


def looks(*found: list[Residue]) -> Callable[[], Awaitable[list[Residue]]]:
    """Finds each list once, the last one for ever."""
    left = list(found)

    async def look() -> list[Residue]:
        return left.pop(0) if len(left) > 1 else left[0]

    return look


@pytest.mark.parametrize(
    ("found", "left"),
    [
        pytest.param([[POD], [POD], []], [], id="it goes"),
        pytest.param([[JOB]], [JOB], id="it does not go by itself"),
        pytest.param([[JOB, POD], [JOB]], [JOB], id="only one goes by itself"),
    ],
)
async def test_what_goes_by_itself_is_waited_for(found: list[list[Residue]], left: list[Residue]) -> None:
    clock = FakeClock()
    assert await lasting(looks(*found), clock=clock, sleep=clock.sleep) == left
    assert clock.now == 1000.0 + len(found) - 1


async def test_what_should_go_by_itself_and_stays_is_left() -> None:
    clock = FakeClock()
    assert await lasting(looks([POD]), clock=clock, sleep=clock.sleep) == [POD]
    assert clock.now == 1000.0 + KUBELET_SECONDS
