"""What a dialect says in its own words: of a container, on a pod, in the IDs of devices."""

from collections.abc import Mapping
from typing import ClassVar

from gpushare_core.books.allocation import Allocation
from gpushare_core.dialects.grants import CardPlace, ContainerGrant
from gpushare_core.dialects.legacy import CardName, LegacyAllocation
from gpushare_core.placement.requests import ResourceClass


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
        """Returns the card of a device of the replaced system's plugin; None for other IDs."""
        return None


def card_before(device_id: str, separator: str) -> str | None:
    """Returns what stands before ``separator`` and the number at the end of ``device_id``."""
    card, found, number = device_id.rpartition(separator)
    return card if card and found and number.isascii() and number.isdecimal() else None
