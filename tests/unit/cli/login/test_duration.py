"""``--request-timeout`` takes what kubectl takes."""

import pytest

from gpushare_cli.arguments import parse
from gpushare_cli.login.duration import read_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        ("7", 7.0),
        ("5s", 5.0),
        ("2m", 120.0),
        ("1h", 3600.0),
        ("1m30s", 90.0),
        ("1.5s", 1.5),
        (".5s", 0.5),
        ("+5s", 5.0),
        ("300ms", 0.3),
        ("10us", 1e-5),
        ("10µs", 1e-5),
    ],
)
def test_seconds_and_times_of_go(text: str, seconds: float) -> None:
    assert read_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "s", "5 s", "-5s", "-5", "5d", "five", "1e3", "5s2", "25h", "٣", "9" * 99]
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"no number|more than a day"):
        read_duration(text)


def test_the_argument_is_refused_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(["version", "--request-timeout", "soon"])
    assert ended.value.code == 2
    assert "'soon': no number of seconds, and no time such as 5s, 2m or 1m30s" in capsys.readouterr().err
