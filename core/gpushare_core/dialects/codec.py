"""How a dialect writes things down: in a container's variables, a pod's annotations, the IDs of devices."""

from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar

from gpushare_core.allocation_annotation import Allocation
from gpushare_core.dialects.grants import CardPlace, ContainerGrant
from gpushare_core.dialects.inspection import InspectedNode
from gpushare_core.dialects.legacy import CardName, LegacyAllocation, read_number
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.text.json_object import Json


class Codec:
    """Of a system that writes nothing of its own; a dialect overrides what its system does write. Pure.

    Our programs decide by our own annotation and variables, which stand beside these.
    """

    bind_keys: ClassVar[tuple[str, ...]] = ()
    """Keys of annotations that ``bind_annotations`` may return."""
    assignment_keys: ClassVar[tuple[str, ...]] = ()
    """Keys of annotations that ``assignment_annotations`` may return."""
    read_keys: ClassVar[tuple[str, ...]] = ()
    """Keys of further annotations that ``read_legacy`` looks at."""

    @property
    def annotation_keys(self) -> tuple[str, ...]:
        """All keys of the dialect's annotations on pods: only our programs may set them."""
        return tuple(dict.fromkeys((*self.bind_keys, *self.assignment_keys, *self.read_keys)))

    def variables(self, _grant: ContainerGrant, /) -> dict[str, str]:
        """Returns the dialect's environment variables, which stand beside ours."""
        return {}

    def bind_annotations(
        self, _allocation: Allocation, _cards: Mapping[str, CardPlace], _at: int, /
    ) -> dict[str, str]:
        """Returns the annotations on the Binding of a pod.

        ``cards``: by UUID, at least those of the allocation. ``at``: nanoseconds since 1970.
        """
        return {}

    def assignment_annotations(self, _resource: ResourceClass, _at: int, /) -> dict[str, str]:
        """Returns the annotations to set once the kubelet has given a pod its units; ``at``: as above."""
        return {}

    def read_legacy(self, _annotations: Mapping[str, str], /) -> LegacyAllocation | None:
        """Returns the cards of a pod that the replaced system bound; None where the annotations do not say.

        Raises:
            MalformedAnnotationsError: the system would not have written these annotations.
        """
        return None

    def card_of(self, _device_id: str, /) -> CardName | None:
        """Returns the card in a device ID of the replaced system's plugin; None for other IDs.

        The container that holds the device may have another card, see ``stored_card``: the kubelet took any
        IDs, and that plugin followed the pod's annotation.
        """
        return None

    def stored_card(
        self, _variables: Mapping[str, str], _device_nodes: Collection[str], /
    ) -> CardName | None:
        """Returns the card that the replaced system's plugin gave to a container, or None.

        ``_variables`` and ``_device_nodes`` (paths): of the plugin's response, as the kubelet has stored it.
        """
        return None

    def unit_size(self, _variables: Mapping[str, str], _devices: int, /) -> int:
        """Returns the bytes of one unit of memory, 0 where it is unknown.

        ``_variables``: those that the replaced system's plugin gave to a container with that many devices.
        """
        return 0

    def inspection(self, _nodes: Sequence[InspectedNode], _error: str, /) -> Json:
        """Returns the response of the system's inspect path; raises ``NotImplementedError`` without one."""
        raise NotImplementedError


class IndexCodec(Codec):
    """Of a system that shares memory of one card, and says on the pod the card's index and the units."""

    index: ClassVar[str]
    """Key of the annotation with the card's index, as the next ones."""
    pod_units: ClassVar[str]
    card_units: ClassVar[str]
    assigned: ClassVar[str]
    assigned_at: ClassVar[str]

    def bind_annotations(
        self, allocation: Allocation, cards: Mapping[str, CardPlace], at: int, /
    ) -> dict[str, str]:
        held = [*shares_of_class(allocation).items()]
        if allocation.resource is not ResourceClass.MEMORY or len(held) != 1:
            return {}  # a dialect with one index has no words for these
        ((uuid, units),) = held
        return {
            self.index: str(cards[uuid].index),
            self.pod_units: str(units),
            self.card_units: str(cards[uuid].units),
            self.assigned: "false",
            self.assigned_at: str(at),
        }

    def assignment_annotations(self, resource: ResourceClass, at: int, /) -> dict[str, str]:
        if resource is not ResourceClass.MEMORY:
            return {}
        return {self.assigned: "true", self.assigned_at: str(at)}

    def read_legacy(self, annotations: Mapping[str, str], /) -> LegacyAllocation | None:
        if self.index not in annotations:
            return None
        index, units = (read_number(annotations, key) for key in (self.index, self.pod_units))
        return LegacyAllocation(cards={index: units}, assigned=annotations.get(self.assigned) == "true")

    def card_of(self, device_id: str, /) -> str | None:
        return card_before(device_id, "-_-")


def shares_of_class(allocation: Allocation) -> dict[str, int]:
    """Returns card UUID -> units of the class ``allocation.resource``; a pod may have other classes, too."""
    held = allocation.held().items()
    return {card: units for card, units in held if allocation.unit_of(card) == allocation.unit}


def card_before(device_id: str, separator: str) -> str | None:
    """Returns what stands before ``separator`` and the number at the end of ``device_id``."""
    card, found, number = device_id.rpartition(separator)
    return card if card and found and number.isascii() and number.isdecimal() else None
