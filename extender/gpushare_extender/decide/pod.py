"""A pod as the API server and kube-scheduler write it, decoded only as far as its request needs.

Whole pods are large, and every filter brings one.
"""

from collections.abc import Mapping

import msgspec

from gpushare_core.json_object import Json
from gpushare_core.placement.requests import PodRequest, ResourceClass, read_request


class Resources(msgspec.Struct, omit_defaults=True):
    """Source: ``v1.ResourceRequirements``."""

    limits: dict[str, str | int | float] | None = None
    requests: dict[str, str | int | float] | None = None


class Container(msgspec.Struct, rename="camel", omit_defaults=True):
    """Source: ``v1.Container``."""

    name: str
    restart_policy: str | None = None
    resources: Resources | None = None


class PodSpec(msgspec.Struct, rename="camel", omit_defaults=True):
    """Source: ``v1.PodSpec``."""

    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    node_name: str = ""


class PodMetadata(msgspec.Struct):
    """Source: ``metav1.ObjectMeta``."""

    uid: str = ""


class Pod(msgspec.Struct):
    """Source: ``v1.Pod``."""

    metadata: PodMetadata = msgspec.field(default_factory=PodMetadata)
    spec: PodSpec = msgspec.field(default_factory=PodSpec)

    def request(self, resources: Mapping[str, ResourceClass]) -> PodRequest:
        """Returns what the pod asks of the extended ``resources``, and of CPU and memory besides."""
        spec: Json = msgspec.to_builtins(self.spec)
        return read_request(spec, resources)
