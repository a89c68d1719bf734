"""When the Lease is free, and what is written to it."""

from dataclasses import replace
from datetime import UTC, datetime

import msgspec
import pytest

from gpushare_core.kube.lease import (
    Lease,
    LeaseObserver,
    LeaseState,
    held_lease,
    released_lease,
)

NOW = datetime(2026, 11, 21, 10, 0, 0, 5000, UTC)
OTHERS = LeaseState("7", "other", 20, 3, "2026-11-21T09:00:00.000000Z")


def observer(*states: tuple[float, LeaseState | None]) -> LeaseObserver:
    """States are None where there was no Lease."""
    observer = LeaseObserver("me", 24)
    for now, state in states:
        observer.observe(state, now=now)
    return observer


@pytest.mark.parametrize(
    ("seen", "left"),
    [
        pytest.param(observer(), 24.0, id="never looked"),
        pytest.param(observer((99.0, None)), 23.0, id="there is none: somebody may rely on a deleted one"),
        pytest.param(observer((70.0, None), (99.0, None)), 0.0, id="there has been none for long"),
        pytest.param(observer((70.0, OTHERS), (99.0, None)), 23.0, id="deleted, perhaps just renewed"),
        pytest.param(
            observer((70.0, replace(OTHERS, seconds=60)), (99.0, None)), 59.0, id="deleted, of a longer one"
        ),
        pytest.param(observer((90.0, LeaseState("7", ""))), 0.0, id="nobody had it yet"),
        pytest.param(observer((98.0, OTHERS), (99.0, LeaseState("8", "", 1))), 0.0, id="given back"),
        pytest.param(observer((70.0, OTHERS), (99.0, LeaseState("8"))), 19.0, id="emptied by a third party"),
        pytest.param(
            observer((70.0, OTHERS), (75.0, LeaseState("8")), (99.0, LeaseState("8"))), 0.0, id="long empty"
        ),
        pytest.param(
            observer((70.0, LeaseState("7", "me")), (99.0, LeaseState("8"))), 0.0, id="ours, emptied"
        ),
        pytest.param(observer((99.0, LeaseState("7", "me"))), 0.0, id="ours"),
        pytest.param(observer((100.0, OTHERS)), 20.0, id="seen for the first time: it may be new"),
        pytest.param(observer((85.0, OTHERS), (95.0, OTHERS)), 5.0, id="unchanged since it was seen first"),
        pytest.param(observer((85.0, OTHERS), (95.0, LeaseState("8", "other", 20))), 15.0, id="renewed"),
        pytest.param(observer((80.0, OTHERS)), 0.0, id="expired before our eyes"),
        pytest.param(observer((99.0, LeaseState("7", "other"))), 23.0, id="without a duration"),
    ],
)
def test_how_long_somebody_else_may_rely_on_it(seen: LeaseObserver, left: float) -> None:
    assert seen.seconds_left(now=100.0) == left


def test_taking_over_counts_and_says_since_when() -> None:
    lease = held_lease(OTHERS, name="x", identity="me", seconds=24, now=NOW)
    assert lease["metadata"] == {"name": "x", "resourceVersion": "7"}
    assert lease["spec"] == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 24,
        "acquireTime": "2026-11-21T10:00:00.005000Z",
        "renewTime": "2026-11-21T10:00:00.005000Z",
        "leaseTransitions": 4,
    }


def test_whatever_somebody_wrote_into_it_it_can_be_taken() -> None:
    """Source: validation of ``coordination.k8s.io/v1``: an int32 from 0 on."""
    lease = held_lease(replace(OTHERS, transitions=2**31 - 1), name="x", identity="me", seconds=24, now=NOW)
    assert lease["spec"]["leaseTransitions"] < 2**31


def test_a_renewal_keeps_when_it_was_taken() -> None:
    lease = held_lease(OTHERS, name="x", identity="other", seconds=24, now=NOW)
    assert (lease["spec"]["acquireTime"], lease["spec"]["leaseTransitions"]) == (OTHERS.acquired, 3)


def test_a_new_one_has_no_version() -> None:
    assert held_lease(None, name="x", identity="me", seconds=24, now=NOW)["metadata"] == {"name": "x"}


def test_given_back_it_has_no_holder() -> None:
    lease = released_lease(OTHERS, name="x", now=NOW)
    written = msgspec.convert({**lease, "metadata": {"resourceVersion": "8"}}, Lease)
    assert written.state() == LeaseState("8", "", 1, 3)


def test_what_others_keep_in_its_metadata_is_written_again() -> None:
    """A PUT replaces all of it: without the annotation of ``kubectl apply`` the next one warns, and touches
    the Lease."""
    metadata = {
        "labels": {"app": "gpushare"},
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
        "ownerReferences": [{"uid": "1"}],
        "finalizers": ["example.com/keep"],
    }
    read = msgspec.convert({"metadata": {**metadata, "resourceVersion": "9", "uid": "2"}}, Lease).state()
    wanted = {"name": "x", "resourceVersion": "9", **metadata}
    assert held_lease(read, name="x", identity="me", seconds=24, now=NOW)["metadata"] == wanted
    assert released_lease(read, name="x", now=NOW)["metadata"] == wanted
