"""What a dialect says in its own words: of a container, on a pod, in the IDs of devices."""

from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar

from gpushare_core.allocation_annotation import Allocation
from gpushare_core.dialects.grants import CardPlace, ContainerGrant
from gpushare_core.dialects.inspection import InspectedNode
from gpushare_core.dialects.legacy import CardName, LegacyAllocation
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.text.json_object import Json


class Codec:
    """Of a system that says nothing of its own. Pure; a dialect overrides what it does say.

    Our own annotation and variables stand beside what is said here: nothing here is an authority for us.
    """

    bind_keys: ClassVar[tuple[str, ...]] = ()
    """Keys of annotations that ``bind_annotations`` may return."""
    assignment_keys: ClassVar[tuple[str, ...]] = ()
    """Keys of annotations that ``assignment_annotations`` may return."""
    read_keys: ClassVar[tuple[str, ...]] = ()
    """Keys of further annotations that ``read_legacy`` looks at."""

    @property
    def annotation_keys(self) -> tuple[str, ...]:
        """Every key of the dialect's annotations on pods: nobody but our programs may set them."""
        return tuple(dict.fromkeys((*self.bind_keys, *self.assignment_keys, *self.read_keys)))

    def variables(self, _grant: ContainerGrant, /) -> dict[str, str]:
        """Returns the environment variables that the dialect has beside ours."""
        return {}

    def bind_annotations(
        self, _allocation: Allocation, _cards: Mapping[str, CardPlace], _at: int, /
    ) -> dict[str, str]:
        """Returns the annotations that the Binding of a pod with this allocation carries.

        ``cards``: by UUID, at least those of the allocation. ``at``: nanoseconds since 1970.
        """
        return {}

    def assignment_annotations(self, _resource: ResourceClass, _at: int, /) -> dict[str, str]:
        """Returns the annotations that are set once the kubelet has given a pod its units.

        ``at``: nanoseconds since 1970.
        """
        return {}

    def read_legacy(self, _annotations: Mapping[str, str], /) -> LegacyAllocation | None:
        """Returns what a pod has that the replaced system bound; None where the annotations do not say.

        Raises:
            MalformedAnnotationsError: the system would not have written them.
        """
        return None

    def card_of(self, _device_id: str, /) -> CardName | None:
        """Returns the card in the ID of a device of the replaced system's plugin; None for other IDs.

        It tells whose ID that is. It is not the card of the container that holds the device: the kubelet took
        any IDs, and the plugin followed the pod's annotation; ``stored_card`` tells that.
        """
        return None

    def stored_card(
        self, _variables: Mapping[str, str], _device_nodes: Collection[str], /
    ) -> CardName | None:
        """Returns the card that the replaced system's plugin gave to a container, by its stored answer.

        ``_variables`` and ``_device_nodes`` (paths): as the kubelet keeps them. None where they do not say.
        """
        return None

    def unit_size(self, _variables: Mapping[str, str], _devices: int, /) -> int:
        """Returns the bytes of one unit of memory, by what the replaced system's plugin told a container with
        so many ``devices``; 0 where that does not say it."""
        return 0

    def inspection(self, _nodes: Sequence[InspectedNode], _error: str, /) -> Json:
        """Returns what the system's inspect path answers.

        Raises:
            NotImplementedError: the system has none.
        """
        raise NotImplementedError


def shares_of_class(allocation: Allocation) -> dict[str, int]:
    """Returns card UUID -> units of the class ``allocation.resource``; a pod of several has others too."""
    held = allocation.held().items()
    return {card: units for card, units in held if allocation.unit_of(card) == allocation.unit}


def memory_share(allocation: Allocation) -> tuple[str, int] | None:
    """Returns the UUID of the one card that ``allocation`` has memory of, and its units; None for all others:
    dialects with one index have no words for them."""
    held = [*shares_of_class(allocation).items()]
    return held[0] if allocation.resource is ResourceClass.MEMORY and len(held) == 1 else None


def card_before(device_id: str, separator: str) -> str | None:
    """Returns what stands before ``separator`` and the number at the end of ``device_id``."""
    card, found, number = device_id.rpartition(separator)
    return card if card and found and number.isascii() and number.isdecimal() else None
