"""What Prometheus reads of the ledger: sums over the cluster, without names of nodes or pods. Pure."""

from collections.abc import Iterator

from gpushare_core.process.metrics import Gauge, Sample
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.ledger.reservations import BindState

NODES = Gauge("gpushare_extender_nodes", "Nodes that take pods that ask for the resource.", ("resource",))
MAX_FREE = Gauge("gpushare_extender_largest_free", "Largest request that fits some node now.", ("resource",))
RESERVATIONS = Gauge(
    "gpushare_extender_reservations", "Reservations for pods that no watch shows as bound yet.", ("state",)
)
HELD_NODES = Gauge("gpushare_extender_held_nodes", "Nodes on which freed units are held for a pod.")

LEDGER_GAUGES = (NODES, MAX_FREE, RESERVATIONS, HELD_NODES)
STATES = {
    BindState.UNDER_WAY: "under_way",
    BindState.CONFIRMED: "confirmed",
    BindState.ABANDONED: "abandoned",
}


def ledger_figures(ledger: Ledger) -> Iterator[Sample]:
    """Yields as many figures for one node as for thousands."""
    for name, amounts in ledger.greatest.items():
        if amounts:
            yield NODES.at(len(amounts), name)
            yield MAX_FREE.at(max(amounts.values()), name)
    for state, text in STATES.items():
        yield RESERVATIONS.at(len(ledger.reservations.in_state(state)), text)
    yield HELD_NODES.at(len(ledger.holds.nodes()))
