"""The schedulers' connection, kept from one module to the next where it is not what is tested.

Connecting kube-scheduler and restoring it takes a minute, in which nothing is done but wait for its kubelet.
Policies that name no node of the cluster keep every dialect in use in every mode: then the policies of a
module come and go within seconds, and no scheduler is edited for them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.e2e.observe import POLICIES, Json, condition, is_true, watch_until
from tests.e2e.product import Product, policy

DIALECTS = ("gpushare.io", "aliyun.com", "volcano.sh", "enflame.com", "tuya.com")
NOWHERE = {mode: f"nowhere-{mode.lower()}" for mode in ("Memory", "Slices", "Exclusive", "Mixed")}
"""Mode -> a node that is not there."""
CARDS = 4
PREFIX = "keeps-"


@dataclass(slots=True)
class Connection:
    """Whether policies without a node keep the schedulers connected."""

    product: Product
    is_kept: bool = field(default=False, init=False)

    def keep(self) -> None:
        """Connect the schedulers for all dialects, unless they are."""
        if not self.is_kept:
            self.is_kept = True
            self.product.apply({"apiVersion": "v1", "kind": "List", "items": keeping()})
            watch_until(
                self.product.cluster,
                POLICIES,
                are_connected,
                what="the schedulers are connected for all dialects",
                seconds=240,
                describe=lambda policies: [condition(each, "SchedulerConfigured") for each in policies],
            )

    def release(self) -> None:
        """Have the schedulers as they were without us."""
        if self.is_kept:
            names = [each["metadata"]["name"] for each in keeping()]
            self.product.cluster.kubectl("delete", "gpusharepolicy", *names, "--timeout=240s")
            self.is_kept = False


def keeping() -> list[Json]:
    return [of_all_modes(f"{PREFIX}{dialect}", dialect, NOWHERE) for dialect in DIALECTS]


def are_connected(policies: Sequence[Json]) -> bool:
    kept = [each for each in policies if each["metadata"]["name"].startswith(PREFIX)]
    return len(kept) == len(DIALECTS) and all(is_true(each, "SchedulerConfigured") for each in kept)


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
