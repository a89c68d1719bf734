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
    """With one card, what all cards of the inventory come with included."""

    device_nodes: tuple[DeviceNode, ...] = ()
    mounts: tuple[HostMount, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    """Name and value."""
    runtime_variable: str = ""
    """The variable in which the vendor's runtime finds the cards of a container; empty where it has none."""
    runtime_name: str = ""
    """The card in that variable."""
    cdi_kind: str = ""
    """Vendor and class; empty where the policy's hold."""
    cdi_name: str = ""
    """The device of that kind."""
