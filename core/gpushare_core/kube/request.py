"""Requests to the API server as values: nothing here knows how they travel."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from gpushare_core.text.json_object import Json

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRequest:
    """One request to the API server."""

    method: str = "GET"
    path: str
    params: Mapping[str, str] = field(default_factory=dict)
    body: Json | None = None
    content_type: str = JSON
    accept: str = JSON
    timeout: float | None = None
    """Seconds until the response is complete; None for the client's own."""

    def content(self) -> bytes | None:
        return None if self.body is None else msgspec.json.encode(self.body)

    def __str__(self) -> str:
        return f"{self.method} {self.path}"
