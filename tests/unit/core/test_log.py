"""One format of log lines: its keys, who reads it, and what must not be in it."""

import ast
import io
import json
import logging
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fakes.extender_clock import FakeClock

from gpushare_core.process.log import (
    KEYS,
    RareLog,
    change_level,
    configure_logging,
    most_verbose,
    without_secrets,
)

ROOT = Path(__file__).parents[3]
PROGRAMS = ("core", "operator", "plugin", "extender", "hostctl")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def logged(stream: io.StringIO, message: str, **extra: str) -> str:
    configure_logging("info", fixed={"node": "gpu-1"}, stream=stream)
    logging.getLogger("gpushare_test").warning(message, extra=extra)
    return stream.getvalue()


def test_in_a_pod_a_line_is_a_json_object_with_the_common_keys() -> None:
    line = json.loads(logged(io.StringIO(), "taken", pod="default/a", card="GPU-1"))
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "level": "warning",
        "logger": "gpushare_test",
        "message": "taken",
        "node": "gpu-1",
        "card": "GPU-1",
        "pod": "default/a",
    }


def test_a_line_is_one_line_whatever_its_message_has() -> None:
    assert logged(io.StringIO(), "one\ntwo").count("\n") == 1


def test_on_a_terminal_a_line_is_for_people() -> None:
    line = logged(Terminal(), "taken", pod="default/a")
    assert line.endswith("warning taken  [node=gpu-1 pod=default/a]\n")


def test_a_lines_own_node_goes_before_that_of_the_process() -> None:
    assert json.loads(logged(io.StringIO(), "seen", node="gpu-2"))["node"] == "gpu-2"


@pytest.mark.parametrize(
    "stream", [pytest.param(io.StringIO, id="pod"), pytest.param(Terminal, id="terminal")]
)
@pytest.mark.parametrize("key", ["", *KEYS])
@pytest.mark.parametrize(
    ("text", "secret"),
    [
        pytest.param("refused: Authorization: Bearer abc.DEF-1_2/3+4=", "DEF", id="bearer token"),
        pytest.param(
            "token eyJhbGciOi.eyJzdWIi.c2lnbmF0dXJl was", "c2lnbmF0dXJl", id="service account token"
        ),
        pytest.param("kept as token-eyJhbGciOi.eyJzdWIi.c2ln", "c2ln", id="token behind a dash"),
        pytest.param(
            "-----BEGIN EC PRIVATE KEY-----\nMHcCAQ\n-----END EC PRIVATE KEY-----", "MHcCAQ", id="key"
        ),
        pytest.param("-----BEGIN PRIVATE KEY-----\nMHcCAQ (cut", "MHcCAQ", id="key cut off"),
    ],
)
def test_no_secret_is_written(stream: type[io.StringIO], key: str, text: str, secret: str) -> None:
    line = logged(stream(), "as given", **{key: text}) if key else logged(stream(), text)
    assert "[redacted]" in line
    assert secret not in line


def test_no_secret_is_written_with_an_error() -> None:
    stream = io.StringIO()
    configure_logging("info", stream=stream)
    try:
        raise RuntimeError("sent Bearer s3cr3t")
    except RuntimeError:
        logging.getLogger("gpushare_test").exception("failed")
    line = json.loads(stream.getvalue())
    assert "RuntimeError: sent Bearer [redacted]" in line["error"]
    assert "s3cr3t" not in stream.getvalue()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("eyJ-" * 16_000, id="words that begin like tokens"),
        pytest.param("-----BEGIN " * 6_000, id="keys that begin"),
        pytest.param("Bearer" + " " * 60_000, id="bearer of nothing"),
    ],
)
def test_a_long_text_of_somebody_else_holds_nobody_up(text: str) -> None:
    began = time.process_time()
    assert without_secrets(text) == text
    assert time.process_time() - began < 0.5


def test_the_level_changes_while_the_process_runs() -> None:
    stream = io.StringIO()
    configure_logging("info", stream=stream)
    log = logging.getLogger("gpushare_test")
    log.debug("not yet")
    assert change_level("debug")
    assert not change_level("debug")
    log.debug("now")
    change_level("error")
    log.warning("no more")
    assert [json.loads(line)["message"] for line in stream.getvalue().splitlines()] == ["now"]


@pytest.mark.parametrize(
    ("levels", "most"),
    [
        pytest.param([], "warning", id="nobody says"),
        pytest.param(["error"], "error", id="one"),
        pytest.param(["error", "info", "warning"], "info", id="the most verbose of several"),
    ],
)
def test_of_several_levels_the_most_verbose_counts(levels: list[str], most: str) -> None:
    assert most_verbose(levels, otherwise="warning") == most


def extra_keys(program: str) -> Iterator[tuple[str, str]]:
    """Yields file and key of whatever is called ``extra`` there and is written out as a dictionary."""
    for path in sorted((ROOT / program).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            named = isinstance(node, ast.keyword) and node.arg == "extra"
            stored = isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "extra"
            value = node.value if isinstance(node, ast.keyword | ast.Assign) else None
            if (named or stored) and isinstance(value, ast.Dict):
                yield from ((path.name, ast.literal_eval(key)) for key in value.keys if key)


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_give_no_key_that_would_be_left_out(program: str) -> None:
    assert [(name, key) for name, key in extra_keys(program) if key not in KEYS] == []


def test_the_keys_are_in_use() -> None:
    used = {key for program in PROGRAMS for _, key in extra_keys(program)}
    assert {"node", "card", "pod"} <= used


def test_a_line_a_minute_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    log = RareLog(logging.getLogger("test"), clock)
    for seconds in (0, 30, 29, 1):
        clock.now += seconds
        log.warning("after %d", seconds)
        log.debug("not shown, and so not counted")
    assert [record.getMessage() for record in caplog.records if record.levelno > logging.DEBUG] == [
        "after 0",
        "after 1",
    ]
