"""The demo plays what is asked for, or says what there is."""

import pytest
from demo.__main__ import hints, main
from demo.scenarios.table import SCENARIOS, scenario_of

from gpushare_core.api.enums import Mode


def test_every_mode_is_played_with_a_policy_that_asks_for_it() -> None:
    assert SCENARIOS.keys() == set(Mode) - {Mode.OFF}
    for name, scenario in SCENARIOS.items():
        assert f"mode: {name}\n" in scenario.policy.read_text()


def test_the_case_of_a_mode_does_not_matter() -> None:
    assert scenario_of("slices") is SCENARIOS["Slices"]


def test_an_unknown_mode_says_what_there_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["demo", "--mode", "Halves"])
    assert main() == 2
    expected = (
        "there is no MODE 'Halves' to play, only Memory, Slices, Exclusive, Mixed: make demo MODE=Slices"
    )
    assert capsys.readouterr().err.strip() == expected


@pytest.mark.parametrize(("mode", "pod"), [("Memory", "kubectl gpushare why units-20"), ("Slices", "")])
def test_the_hints_name_the_pod_that_waits(mode: str, pod: str) -> None:
    text = hints(SCENARIOS[mode])
    assert pod in text
    assert ("why it waits" in text) == bool(pod)
