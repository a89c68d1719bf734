"""The schedulers' connection, kept from one module to the next where it is not what is tested.

Connecting kube-scheduler and restoring it takes a minute, in which nothing is done but wait for its kubelet.
A policy that shares a card of the control plane, where no pod of a test goes, keeps the names of our dialect
in use: then the policies of a module in that dialect come and go within seconds, and no scheduler is edited.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.e2e.observe import POLICIES, Json, condition, get, is_true, watch_until
from tests.e2e.product import Product, policy

CARDS = 4
KEEPER = "keeps-schedulers-connected"


@dataclass(slots=True)
class Connection:
    """Whether a policy of its own keeps the schedulers connected."""

    product: Product
    is_kept: bool = field(default=False, init=False)

    def keep(self) -> None:
        """Connect the schedulers, unless they are."""
        if not self.is_kept:
            self.is_kept = True
            self.product.apply(policy(KEEPER, nodes=["control-plane-1"], cards=1))
            watch_until(
                self.product.cluster,
                POLICIES,
                are_connected,
                what="the schedulers are connected",
                seconds=240,
                describe=lambda policies: [condition(policy, "SchedulerConfigured") for policy in policies],
            )

    def release(self) -> None:
        """Have the schedulers as they were without us."""
        if self.is_kept:
            self.product.delete(KEEPER)
            self.is_kept = False

    def policies_of_others(self) -> list[str]:
        """Returns the names of all policies but the one that keeps the schedulers connected."""
        found = get(self.product.cluster, POLICIES)["items"]
        return [name for policy in found if (name := str(policy["metadata"]["name"])) != KEEPER]


def are_connected(policies: Sequence[Json]) -> bool:
    return any(policy["metadata"]["name"] == KEEPER and is_true(policy, "Ready") for policy in policies)


def of_all_modes(name: str, dialect: str, nodes: Mapping[str, str]) -> Json:
    """A policy in ``dialect`` with a node for each mode."""
    body = policy(name, nodes=[])
    body["spec"]["dialect"] = dialect
    body["spec"]["nodes"] = [rule(mode, node) for mode, node in nodes.items()]
    return body


def rule(mode: str, node: str) -> Json:
    memory = "86Gi" if mode == "Mixed" else "16Gi"
    slices: dict[str, Any] = {"slicesPerCard": 2} if mode in ("Slices", "Mixed") else {}
    (found,) = policy("", nodes=[node], cards=CARDS, memory=memory, mode=mode, **slices)["spec"]["nodes"]
    return dict(found)
