"""The last line of the program."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpushare_hostctl.report import Report


def test_the_report_is_one_json_object_in_the_operators_words() -> None:
    line = Report(result="Installed", message="done", sha256_before="a", sha256_after="b").encode()

    assert json.loads(line) == {
        "result": "Installed",
        "message": "done",
        "sha256Before": "a",
        "sha256After": "b",
        "inputs": None,
        "renewAfter": None,
    }


@pytest.mark.parametrize("message", ["x" * 9000, '"' * 9000, "é\n" * 9000, "\\\x00" * 9000])
def test_a_long_message_is_cut_so_that_the_kubelet_keeps_the_whole_line(message: str) -> None:
    line = Report(result="Failed", message=message, sha256_before="a" * 64, sha256_after=None).encode()

    assert json.loads(line)["result"] == "Failed"
    assert len(line.encode()) <= 4096


@given(st.text())
def test_any_message_stays_on_one_line(message: str) -> None:
    line = Report(result="Failed", message=message).encode()

    assert "\n" not in line
    assert isinstance(json.loads(line)["message"], str)
