"""Mode Exclusive: cards that nobody else gets."""

from demo.scenarios.scenario import SAMPLES, Scenario
from demo.stage import Stage
from demo.workload import CARD


class ExclusiveScenario(Scenario):
    mode = "Exclusive"
    policy = SAMPLES / "exclusive.yaml"
    policy_text = "4 simulated cards of 16Gi, each for one pod at a time"

    def play(self, stage: Stage) -> None:
        stage.step("Pods of three cards and of one: then the node is full")
        three, one = stage.place("three", CARD, 3), stage.place("one", CARD, 1)
        stage.require(len({*three.cards, *one.cards}) == 4, "no card serves two pods", (three, one))
        stage.refuse("two", CARD, 2, reason=f"Insufficient {CARD}")
        stage.show_books()
        stage.step("The pod with three cards goes, and the one that waited for two runs")
        stage.end("three")
        two = stage.wait_for("two")
        stage.require(not {*two.cards} & {*one.cards}, "no card serves two pods", (two, one))
