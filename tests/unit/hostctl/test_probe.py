"""When looks at kube-scheduler add up to a process that works, and to another one than before."""

from collections.abc import Iterator, Sequence

import pytest

from gpushare_hostctl.decide.endpoint import Endpoint
from gpushare_hostctl.host.probe import Look, Restart, SchedulerNotServingError, Waiter

ENDPOINT = Endpoint(host="127.0.0.1", port=10259, path="/readyz", lasting_certificate=False)
DOWN = Look(serving=False, fingerprint=None, detail="Connection refused")


def serving(fingerprint: str) -> Look:
    return Look(serving=True, fingerprint=fingerprint, detail="HTTP 200")


def starting(fingerprint: str) -> Look:
    return Look(serving=False, fingerprint=fingerprint, detail="HTTP 500")


class ScriptedProber:
    """Gives the looks of a script, the last one for ever."""

    def __init__(self, looks: Sequence[Look]) -> None:
        self._looks: Iterator[Look] = iter(looks)
        self._last = looks[-1]
        self.count = 0

    def look(self, endpoint: Endpoint) -> Look:  # noqa: ARG002
        self.count += 1
        return next(self._looks, self._last)


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def waiter(*looks: Look, timeout: float = 10.0) -> Waiter:
    time = Time()
    return Waiter(prober=ScriptedProber(looks), clock=time.clock, sleep=time.sleep, timeout=timeout)


@pytest.mark.parametrize(
    ("looks", "seen"),
    [
        pytest.param([serving("new")] * 3, True, id="another certificate"),
        pytest.param([DOWN, *[serving("old")] * 3], True, id="away and back with a lasting certificate"),
        pytest.param([serving("old")] * 3, False, id="the old process"),
        pytest.param([serving("new")] * 2, False, id="not yet steady"),
        pytest.param([serving("new"), DOWN, serving("newer"), DOWN] * 3, False, id="starting and falling"),
        pytest.param([serving("a"), serving("b"), serving("a"), serving("b")], False, id="two in turn"),
        pytest.param([starting("new")] * 9, False, id="alive but not ready"),
        pytest.param(
            [starting("old"), *[serving("old")] * 3], False, id="the old process, unready for a while"
        ),
        pytest.param([DOWN, starting("new"), *[serving("new")] * 3], True, id="a usual restart"),
    ],
)
def test_a_restart_is_told_from_the_process_before(looks: list[Look], seen: bool) -> None:  # noqa: FBT001
    restart = Restart(before="old")

    assert any(restart.observe(look, now=second) for second, look in enumerate(looks)) is seen


def test_any_process_is_new_where_none_served_before() -> None:
    restart = Restart(before=None)

    assert [restart.observe(serving("x"), now=0.0) for _ in range(3)] == [False, False, True]


def test_a_restart_too_short_to_be_seen_counts_after_steady_service() -> None:
    restart = Restart(before="old", settle=3.0)

    assert [restart.observe(serving("old"), now=second) for second in range(5)] == [False] * 3 + [True] * 2


def test_service_that_was_interrupted_settles_anew() -> None:
    restart = Restart(before="old", settle=3.0)
    looks = [serving("old"), serving("old"), starting("old"), *[serving("old")] * 3]

    assert not any(restart.observe(look, now=second) for second, look in enumerate(looks))


def test_waiting_ends_with_the_new_process() -> None:
    waiter(serving("old"), DOWN, serving("new")).until_restarted(ENDPOINT, before="old", settle=False)


def test_waiting_for_a_restart_says_what_it_saw_last() -> None:
    with pytest.raises(
        SchedulerNotServingError, match=r"https://127.0.0.1:10259/readyz within 10 s .*refused"
    ):
        waiter(serving("old"), DOWN).until_restarted(ENDPOINT, before="old", settle=False)


def test_half_the_time_of_steady_service_settles() -> None:
    waiter(serving("old")).until_restarted(ENDPOINT, before="old", settle=True)


def test_waiting_for_service_takes_any_process() -> None:
    waiter(DOWN, serving("old")).until_serving(ENDPOINT)


def test_waiting_for_service_gives_up_at_the_deadline() -> None:
    with pytest.raises(SchedulerNotServingError, match="within 10 s"):
        waiter(starting("old")).until_serving(ENDPOINT)
