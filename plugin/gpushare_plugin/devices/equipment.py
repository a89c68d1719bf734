"""What a container gets with a card of an inventory."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DeviceNode:
    host_path: str
    container_path: str
    permissions: str = "rw"
    """Of ``r``, ``w`` and ``m``."""


@dataclass(frozen=True, slots=True)
class HostMount:
    host_path: str
    container_path: str
    read_only: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Equipment:
    """Of one card, with what all cards of the inventory come with."""

    device_nodes: tuple[DeviceNode, ...] = ()
    mounts: tuple[HostMount, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    """Name and value."""
    runtime_variable: str = ""
    """The variable that tells the vendor's runtime the cards of a container; empty where there is none."""
    runtime_name: str = ""
    """The card in that variable."""
    cdi_kind: str = ""
    """Vendor and class; empty for those of the policy."""
    cdi_name: str = ""
    """The device of that kind."""
