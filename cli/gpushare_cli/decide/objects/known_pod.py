"""What is kept of a pod of which a GPUShareNode says what it holds."""

from msgspec import Struct


class KnownPodMetadata(Struct, rename="camel", gc=False):
    uid: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None


class KnownPod(Struct, gc=False):
    """Source: ``metav1.PartialObjectMetadata``."""

    metadata: KnownPodMetadata
