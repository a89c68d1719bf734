"""A ResourceQuota, as far as it limits extended resources."""

from collections.abc import Mapping

from msgspec import Struct, field


class QuotaMetadata(Struct):
    name: str
    namespace: str = ""


class QuotaAmounts(Struct):
    hard: dict[str, str | int] | None = None
    used: dict[str, str | int] | None = None


class ResourceQuotaObject(Struct):
    """Source: ``v1.ResourceQuota``."""

    metadata: QuotaMetadata
    spec: QuotaAmounts = field(default_factory=QuotaAmounts)
    status: QuotaAmounts = field(default_factory=QuotaAmounts)

    @property
    def hard(self) -> Mapping[str, str | int]:
        """The limits in force; those that are asked for where no controller has looked at the quota yet."""
        return self.status.hard or self.spec.hard or {}
