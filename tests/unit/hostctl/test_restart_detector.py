"""When probes of kube-scheduler add up to a process that works, and to another one than before."""

import math

import pytest
from tests.samples.hostctl import NOBODY_LISTENS, TOO_SLOW, process, serving, starting

from gpushare_hostctl.decide.run.process_identity import ProcessIdentity
from gpushare_hostctl.decide.run.restart_detector import ProbeResult, RestartDetector


def restart_seen(
    probes: list[ProbeResult], *, before: ProcessIdentity, lasting: bool = False, service: float = 0.0
) -> bool:
    restart = RestartDetector(before=before, lasting_certificate=lasting)
    return any(
        restart.observe(probe, now=number * 0.25, lasting=service) for number, probe in enumerate(probes)
    )


OLD = [serving("old")] * 9
NEW = [serving("new")] * 3


@pytest.mark.parametrize(
    ("probes", "seen"),
    [
        pytest.param(NEW, True, id="another certificate"),
        pytest.param(OLD, False, id="the old process all along"),
        pytest.param([TOO_SLOW, *OLD], False, id="a busy node and one timeout"),
        pytest.param([TOO_SLOW] * 40 + OLD, False, id="a busy node and many timeouts"),
        pytest.param([NOBODY_LISTENS, *OLD], False, id="one refused connection"),
        pytest.param([NOBODY_LISTENS] * 9 + OLD, False, id="refused for long, and the old process again"),
        pytest.param([serving("new")] * 2, False, id="not yet steady"),
        pytest.param(
            [serving("new"), NOBODY_LISTENS, serving("newer"), NOBODY_LISTENS] * 3,
            False,
            id="starting and falling",
        ),
        pytest.param([serving("a"), serving("b"), serving("a"), serving("b")], False, id="two in turn"),
        pytest.param([starting("new")] * 9, False, id="alive but not ready"),
        pytest.param([starting("old"), *OLD], False, id="the old process, unready for a while"),
        pytest.param([NOBODY_LISTENS, starting("new"), *NEW], True, id="a usual restart"),
        pytest.param([TOO_SLOW, NOBODY_LISTENS, TOO_SLOW, *NEW], True, id="a restart on a busy node"),
    ],
)
def test_a_certificate_in_memory_is_the_proof(probes: list[ProbeResult], seen: bool) -> None:  # noqa: FBT001
    assert restart_seen(probes, before=process("old")) is seen


@pytest.mark.parametrize("lasting", [True, False])
@pytest.mark.parametrize(
    ("probes", "seen"),
    [
        pytest.param([serving("same", 1)] * 99, False, id="the same process all along"),
        pytest.param([TOO_SLOW, *[serving("same", 1)] * 9], False, id="one timeout"),
        pytest.param([NOBODY_LISTENS] * 9 + [serving("same", 1)] * 9, False, id="refused, by a full queue"),
        pytest.param([serving("same", 2)] * 3, True, id="another socket"),
        pytest.param([NOBODY_LISTENS, *[serving("same", 2)] * 3], True, id="a real restart"),
        pytest.param([serving("same", 1, 2)] * 9, False, id="old and new share the port"),
    ],
)
def test_the_listening_socket_is_the_proof(probes: list[ProbeResult], lasting: bool, seen: bool) -> None:  # noqa: FBT001
    assert restart_seen(probes, before=process("same", 1), lasting=lasting) is seen


SAME = [serving("same")] * 9


@pytest.mark.parametrize(
    ("probes", "seen"),
    [
        pytest.param(SAME * 20, False, id="the same process all along"),
        pytest.param([TOO_SLOW] * 40 + SAME, False, id="a busy node"),
        pytest.param([NOBODY_LISTENS, *SAME], False, id="one refused connection"),
        pytest.param(
            [NOBODY_LISTENS, *SAME[:1], NOBODY_LISTENS, *SAME] * 5, False, id="refused now and then"
        ),
        pytest.param([NOBODY_LISTENS, TOO_SLOW, *([NOBODY_LISTENS] * 4), *SAME], False, id="refused shortly"),
        pytest.param([NOBODY_LISTENS] * 5 + SAME, True, id="refused for a second at every look"),
        pytest.param([serving("renewed")] * 9, False, id="files of the certificate renewed"),
    ],
)
def test_where_neither_can_be_compared_only_a_lasting_absence_counts(
    probes: list[ProbeResult],
    seen: bool,  # noqa: FBT001
) -> None:
    assert restart_seen(probes, before=process("same"), lasting=True) is seen


def test_any_process_is_new_where_nobody_listened_before() -> None:
    assert restart_seen([serving("x", 1)] * 3, before=ProcessIdentity(sockets=()), lasting=True)


def test_a_new_process_has_to_serve_without_a_break() -> None:
    old = process("old", 1)
    overtaken = [NOBODY_LISTENS, *[serving("x", 2)] * 40, NOBODY_LISTENS]

    assert not restart_seen(overtaken, before=old, service=10.0)
    assert not restart_seen([serving("x", 2)] * 30 + [serving("x", 3)] * 30, before=old, service=10.0)
    assert restart_seen([*overtaken, *[serving("x", 3)] * 41], before=old, service=10.0)


def test_service_before_a_process_can_be_the_awaited_one_does_not_count() -> None:
    restart = RestartDetector(before=process("old", 1), lasting_certificate=False)
    new = serving("new", 2)

    assert not any(restart.observe(new, now=second, lasting=math.inf) for second in range(60))
    assert not any(restart.observe(new, now=60 + second, lasting=10.0) for second in range(10))
    assert restart.observe(new, now=70, lasting=10.0)


def test_no_process_is_new_where_it_is_unknown_who_served_before() -> None:
    assert not restart_seen([serving("x")] * 9, before=ProcessIdentity())


def test_a_restart_that_may_be_missed_counts_after_steady_service() -> None:
    restart = RestartDetector(before=process("old"), lasting_certificate=True, assume_missed_after=3.0)

    assert [restart.observe(serving("old"), now=second, lasting=0) for second in range(5)] == [False] * 3 + [
        True
    ] * 2


def test_service_that_was_interrupted_counts_anew() -> None:
    restart = RestartDetector(before=process("old"), lasting_certificate=True, assume_missed_after=3.0)
    probes = [serving("old"), serving("old"), starting("old"), *[serving("old")] * 3]

    assert not any(restart.observe(probe, now=second, lasting=0) for second, probe in enumerate(probes))
