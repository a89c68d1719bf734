"""Mode Memory: pods of 4, 8, 12 and 20 units, as GCUShare's documents have it."""

from demo.scenarios.scenario import SAMPLES, Scenario
from demo.stage import Stage
from demo.workload import MEMORY


class MemoryScenario(Scenario):
    mode = "Memory"
    policy = SAMPLES / "simulated.yaml"
    policy_text = "unit 1Gi, 8 simulated cards of 16Gi on every worker"
    waiting_pod = "units-20"
    workers = 3

    def play(self, stage: Stage) -> None:
        stage.step("Pods of 4, 8, 12 and 20 units, one after the other")
        places = {units: stage.place(f"units-{units}", MEMORY, units) for units in (4, 8, 12)}
        stage.require(places[4] == places[8], "4 and 8 units share one card", places)
        stage.require(places[12] != places[4], "12 units are on another card", places)
        reason = "insufficient GPU memory in one card: asked 20, largest free 16"
        stage.refuse("units-20", MEMORY, 20, reason=reason)
