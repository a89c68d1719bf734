"""kube-scheduler's command line, read as pflag reads it."""

import pytest

from gpushare_hostctl.decide.scheduler.scheduler_flags import SchedulerFlags
from gpushare_hostctl.errors import NeedsPersonError


@pytest.mark.parametrize(
    ("words", "value"),
    [
        pytest.param(["--config=/x"], "/x", id="joined by an equals sign"),
        pytest.param(["--config", "/x"], "/x", id="as two words"),
        pytest.param(["--leader-elect", "--config=/x"], "/x", id="behind a boolean without a value"),
        pytest.param(["--kubeconfig", "/k", "--config", "/x", "--v=2"], "/x", id="between others"),
        pytest.param(["--config=/old", "--config=/x"], "/x", id="the last of two counts"),
        pytest.param(["--config=/a=b"], "/a=b", id="an equals sign in the value"),
        pytest.param(["--config="], "", id="empty"),
        pytest.param(["-v", "2", "--config=/x"], "/x", id="behind a shorthand"),
        pytest.param(["--", "--config=/x"], None, id="not behind the end of flags"),
        pytest.param(["--config-other=/x"], None, id="a longer name is another flag"),
        pytest.param(["--kubeconfig", "config"], None, id="a value is no flag"),
        pytest.param([], None, id="no words"),
    ],
)
def test_the_value_of_config_is_found(words: list[str], value: str | None) -> None:
    assert SchedulerFlags(tuple(words)).value("config") == value


def test_underscores_and_dashes_in_a_name_are_the_same() -> None:
    assert SchedulerFlags(("--kube_api_qps=7",)).value("kube-api-qps") == "7"


@pytest.mark.parametrize(
    ("word", "value"),
    [
        pytest.param("--profiling", True, id="the name alone is true"),
        pytest.param("--profiling=true", True, id="true"),
        pytest.param("--profiling=T", True, id="another spelling of true"),
        pytest.param("--profiling=0", False, id="another spelling of false"),
        pytest.param("--other", None, id="not given"),
    ],
)
def test_booleans_have_the_spellings_of_go(word: str, value: bool | None) -> None:  # noqa: FBT001
    assert SchedulerFlags((word,)).boolean("profiling") is value


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(["--config"], "no value", id="no value at the end"),
        pytest.param(["--config", "--other=1"], "no value", id="no value before another flag"),
        pytest.param(["--config=$(CONFIG)"], "environment", id="a value from the environment"),
    ],
)
def test_a_value_that_is_not_in_the_manifest_needs_a_person(words: list[str], message: str) -> None:
    with pytest.raises(NeedsPersonError, match=message):
        SchedulerFlags(tuple(words)).value("config")


def test_a_boolean_that_is_none_needs_a_person() -> None:
    with pytest.raises(NeedsPersonError, match="neither true nor false"):
        SchedulerFlags(("--profiling=maybe",)).boolean("profiling")
