"""What one pod has, card by card."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from gpushare_core.allocation_annotation import sum_shares
from gpushare_core.placement.requests import ResourceClass
from gpushare_plugin.decide.held.pods import Pod


@dataclass(frozen=True, slots=True)
class PodAllocation:
    """What one admitted pod has."""

    pod: Pod
    containers: Mapping[str, Mapping[str, int]]
    """Container -> card UUID -> units; ordinary init containers are included where their card is known."""
    cards: Mapping[str, int]
    """Card UUID -> units that the kubelet keeps for the pod as a whole."""
    orphaned: bool = False
    """Whether the API server does not have the pod among those that run."""
    classes: Mapping[str, ResourceClass] = field(default_factory=dict)
    """Card UUID -> class of the pod's units there, where that is known."""
    recorded: bool = False
    """Whether the GPUShareNode alone says it, under a UID that may be that of a former mirror."""

    def is_of(self, pod: Pod) -> bool:
        """Whether it is of ``pod``, whose mirror may have been made anew."""
        has_uid = self.pod.kubelet_uid in ("", pod.kubelet_uid, pod.uid)
        return has_uid or (self.recorded and bool(pod.static_uid))

    def of_containers(self, names: Iterable[str]) -> "PodAllocation":
        shares = {name: self.containers[name] for name in names if self.containers.get(name)}
        cards = sum_shares(shares)
        classes = {card: resource for card, resource in self.classes.items() if card in cards}
        return replace(self, containers=shares, cards=cards, classes=classes)
