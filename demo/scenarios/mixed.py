"""Mode Mixed: the first use of a card decides what it serves, with the figures that Tuya publishes."""

from typing import NamedTuple

from demo.scenarios.scenario import SAMPLES, Scenario
from demo.stage import Stage
from demo.workload import CARD, MEMORY, SLICE


class Offer(NamedTuple):
    """The node's amount of each resource, in capacity and in allocatable."""

    cards: int
    slices: int
    memory: int

    def __str__(self) -> str:
        return f"card {self.cards} / slice {self.slices} / memory {self.memory}"


WHOLE = Offer(4, 8, 344)
"""Four free cards."""


class Use(NamedTuple):
    """A pod, what it requests, and what its node offers while it runs."""

    name: str
    resource: str
    amount: int
    offer: Offer


USES = (
    Use("halves", SLICE, 2, Offer(2, 8, 172)),
    Use("memory", MEMORY, 10, Offer(1, 6, 172)),
    Use("card", CARD, 1, Offer(1, 4, 86)),
)


class MixedScenario(Scenario):
    mode = "Mixed"
    policy = SAMPLES / "mixed.yaml"
    policy_text = "4 simulated cards of 86Gi that serve memory, halves and whole cards"

    def play(self, stage: Stage) -> None:
        stage.step("All four cards are free, and each is open to everything")
        self._show(stage, WHOLE)
        for use in USES:
            stage.step(f"A pod asks for {use.resource}: {use.amount}")
            stage.place(use.name, use.resource, use.amount)
            self._show(stage, use.offer)
        stage.show_books()
        stage.step("The last one goes first, and step by step everything is free again")
        before = (WHOLE, *(use.offer for use in USES))
        for use, offer in reversed([*zip(USES, before, strict=False)]):
            stage.end(use.name)
            self._show(stage, offer)

    def _show(self, stage: Stage, offer: Offer) -> None:
        """Waits until the node says so: the plugin tells the kubelet a moment after the pod has ended."""
        wanted = {CARD: offer.cards, SLICE: offer.slices, MEMORY: offer.memory}
        for kind in ("capacity", "allocatable"):
            stage.wait_for_node(kind, wanted)
        stage.say(f"the node offers {offer}, in capacity and allocatable")
