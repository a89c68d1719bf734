"""What is compared: the product's engines, DRA claims, and kube-schedulers with and without the plugin."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from bench.cluster.bench_cluster import UNITS
from bench.engines import configuration
from bench.engines.claims import with_claim
from bench.measuring.figures import Figure

from gpushare_core.api.names import DEDICATED_EXTENDER_ACCOUNT, DEDICATED_SCHEDULER
from gpushare_core.text.json_object import Json

Configure = Callable[[Json], Json]


@dataclass(frozen=True, slots=True)
class Engine:
    """Who places pods beside the cluster's own kube-scheduler.

    ``configure`` returns the configuration out of the product's own; None where it has another one.
    """

    name: str
    scheduler: str = DEDICATED_SCHEDULER
    configure: Configure | None = None
    units: int = UNITS
    """That each of its pods asks for by our resource."""
    asking: Callable[[Json], Json] = lambda pod: pod
    """Has such a pod ask for more."""
    account: str = DEDICATED_SCHEDULER
    """The ServiceAccount with whose rights it runs."""


PLUGIN = Engine("Plugin", configure=configuration.of_plugin)
EXTENDER = Engine("Extender", account=DEDICATED_EXTENDER_ACCOUNT)
CLAIMS = Engine("DRA claims", "default-scheduler", units=0, asking=with_claim)
# Of these two plain pods are of interest:
IN_PLACE = Engine("kube-scheduler with the plugin", configure=configuration.in_place, units=0)
STOCK = Engine("kube-scheduler without the plugin", configure=configuration.without_plugin, units=0)


def judged(engine: Engine, figures: Iterable[Figure]) -> list[Figure]:
    """Returns the figures of a row with ``engine``: the targets are those of engine Plugin."""
    return [figure if engine is PLUGIN else replace(figure, target=None) for figure in figures]
