"""The scenarios by the mode that they show."""

from demo.scenarios.exclusive import ExclusiveScenario
from demo.scenarios.memory import MemoryScenario
from demo.scenarios.mixed import MixedScenario
from demo.scenarios.scenario import Scenario
from demo.scenarios.slices import SlicesScenario

SCENARIOS: dict[str, Scenario] = {
    scenario.mode: scenario
    for scenario in (MemoryScenario(), SlicesScenario(), ExclusiveScenario(), MixedScenario())
}


def scenario_of(mode: str) -> Scenario:
    """Raises ``ValueError`` with the modes that exist where no scenario shows ``mode``; case does not
    matter."""
    if scenario := SCENARIOS.get(mode.capitalize()):
        return scenario
    raise ValueError(f"there is no MODE {mode!r} to play, only {', '.join(SCENARIOS)}: make demo MODE=Slices")
