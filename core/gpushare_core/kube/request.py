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


def page_request(path: str, *, limit: int, label_selector: str = "", field_selector: str = "") -> ApiRequest:
    """Asks for the first page of a collection, of at most ``limit`` objects."""
    selectors = {"labelSelector": label_selector, "fieldSelector": field_selector}
    params = {"limit": str(limit), **{name: value for name, value in selectors.items() if value}}
    return ApiRequest(path=path, params=params)


def create_request(path: str, body: Json, params: Mapping[str, str]) -> ApiRequest:
    return ApiRequest(method="POST", path=path, body=body, params=params)


def patch_request(path: str, body: Json, params: Mapping[str, str], *, content_type: str) -> ApiRequest:
    return ApiRequest(method="PATCH", path=path, body=body, content_type=content_type, params=params)


def delete_request(path: str, *, uid: str = "") -> ApiRequest:
    options: Json = {"propagationPolicy": "Background"}
    if uid:
        options["preconditions"] = {"uid": uid}
    return ApiRequest(method="DELETE", path=path, body=options)
