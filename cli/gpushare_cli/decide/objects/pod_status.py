"""How a pod stands, by schedulers and its kubelet."""

import msgspec
from msgspec import Struct, field

from gpushare_core.text.json_object import Json


class ContainerState(Struct, rename="camel"):
    """Source: ``v1.ContainerStateWaiting`` and ``v1.ContainerStateTerminated``."""

    reason: str | None = None
    message: str | None = None


class KnownContainer(Struct, rename="camel"):
    """Source: ``v1.ContainerStatus``."""

    name: str = ""
    state: dict[str, ContainerState | None] | None = None
    """``waiting``, ``running`` or ``terminated``, one of them."""


class KnownCondition(Struct, rename="camel"):
    """Source: ``v1.PodCondition``."""

    type: str = ""
    reason: str | None = None
    message: str | None = None


class KnownStatus(Struct, rename="camel"):
    """Source: ``v1.PodStatus``."""

    phase: str | None = None
    reason: str | None = None
    message: str | None = None
    start_time: str | None = None
    conditions: list[KnownCondition] | None = None
    init_container_statuses: list[KnownContainer] | None = None
    container_statuses: list[KnownContainer] | None = None

    @property
    def has_ended(self) -> bool:
        return self.phase in ("Succeeded", "Failed")

    @property
    def containers(self) -> list[KnownContainer]:
        """In the order in which they start."""
        return [*(self.init_container_statuses or ()), *(self.container_statuses or ())]


class _WithStatus(Struct):
    status: KnownStatus | None = field(default_factory=KnownStatus)


def status_of(pod: Json) -> KnownStatus:
    """Returns an empty status where it has a shape that no API server gives it."""
    try:
        return msgspec.convert(pod, _WithStatus).status or KnownStatus()
    except msgspec.ValidationError:
        return KnownStatus()
