"""Mode Slices: two halves are halves of two cards, as Tuya's documents have it for ``sgpu: 2``."""

from demo.scenarios.scenario import SAMPLES, Scenario
from demo.stage import Stage
from demo.workload import SLICE


class SlicesScenario(Scenario):
    mode = "Slices"
    policy = SAMPLES / "slices.yaml"
    policy_text = "3 simulated cards of 16Gi, each cut into two halves"

    def play(self, stage: Stage) -> None:
        stage.step("A pod that asks for two halves, and two pods that ask for one")
        pair = stage.place("pair", SLICE, 2)
        stage.require(len(set(pair.cards)) == 2, "two halves are of two different cards", pair)
        singles = [stage.place(name, SLICE, 1) for name in ("single-1", "single-2")]
        filled = {card for single in singles for card in single.cards}
        stage.require(filled == set(pair.cards), "the other halves of these cards are taken first", singles)
        self._wait_and_run(stage)

    def _wait_and_run(self, stage: Stage) -> None:
        stage.step("Two halves are left, both of the third card: the next pair has to wait")
        reason = "needs 2 cards with a free slice, has 1"
        stage.refuse("next-pair", SLICE, 2, reason=reason)
        stage.show_books()
        stage.step("The first pair goes, and the next one runs")
        stage.end("pair")
        pair = stage.wait_for("next-pair")
        stage.require(len(set(pair.cards)) == 2, "it has halves of two different cards", pair)
