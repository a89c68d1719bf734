"""Whether an object still is as it was made."""

import operator
from typing import Any

import pytest

from gpushare_operator.cluster.readers.workloads import read_daemon_set
from gpushare_operator.desired import drift
from gpushare_operator.desired.drift import has_drifted


@pytest.mark.parametrize(
    ("actual", "desired", "in_force"),
    [
        pytest.param({"a": 1, "default": 2}, {"a": 1}, True, id="defaults"),
        pytest.param({"a": 1}, {"a": 2}, False, id="other value"),
        pytest.param({}, {"a": None}, False, id="missing"),
        pytest.param({"l": [{"a": 1, "b": 2}]}, {"l": [{"a": 1}]}, True, id="defaults in a list"),
        pytest.param({"l": [1, 2]}, {"l": [1]}, False, id="longer list"),
        pytest.param({"l": [2, 1]}, {"l": [1, 2]}, False, id="other order"),
        pytest.param("x", {"a": 1}, False, id="no object"),
        pytest.param("x", ["x"], False, id="no list"),
    ],
)
def test_more_is_no_drift_and_something_else_is(actual: Any, desired: Any, *, in_force: bool) -> None:
    assert has_drifted({"spec": actual}, {"spec": desired}) is not in_force


def test_what_many_objects_have_in_common_is_compared_once() -> None:
    compared: list[Any] = []

    def counted(actual: Any, desired: Any) -> bool:
        compared.append((actual, desired))
        return bool(actual["a"] == desired["a"])

    comparisons, wanted, same, other = drift.Comparisons(counted), {"a": 1}, {"a": 1, "b": 2}, {"a": 2}
    for _ in range(3):
        assert comparisons.agree(same, wanted)
        assert not comparisons.agree(other, wanted)
    assert len(compared) == 2


def test_comparisons_are_not_kept_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drift, "MAX_COMPARISONS", 3)
    comparisons = drift.Comparisons(operator.eq)
    for number in range(10):
        assert comparisons.agree({"a": number}, {"a": number})
        assert len(comparisons._found) <= 3


def test_kind_and_version_do_not_count_since_lists_leave_them_out() -> None:
    body = {"metadata": {"name": "x", "uid": "uid-x", "labels": {"a": "b"}}, "spec": {"x": 1}}
    present = read_daemon_set(body).body
    assert not has_drifted(present, {"kind": "DaemonSet", "metadata": {"name": "x"}, "spec": {"x": 1}})
    assert has_drifted(present, {"metadata": {"name": "x"}, "spec": {"x": 2}})
