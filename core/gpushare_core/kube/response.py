"""Responses of the API server as values, and how they are read."""

from dataclasses import dataclass
from typing import Annotated, Generic, NamedTuple, TypeVar

import msgspec

from gpushare_core.kube.errors import ApiError, UnreachableError, retry_after_seconds
from gpushare_core.kube.request import ApiRequest
from gpushare_core.text.json_object import UNREADABLE_JSON, Json

T = TypeVar("T")


class HttpResponse(NamedTuple):
    """A complete response."""

    status: int
    content: bytes
    retry_after: str = ""
    """The header ``Retry-After``."""


class ListMetadata(msgspec.Struct):
    """Metadata of a list or of one object. Every list of the API server has a version. Without this check a
    response that is no list would say that all objects are gone, and an event without a version would make
    the watch resume from anywhere."""

    resource_version: Annotated[str, msgspec.Meta(min_length=1)] = msgspec.field(name="resourceVersion")
    next_page: str = msgspec.field(name="continue", default="")


class ListResponse(msgspec.Struct, Generic[T]):
    """One page of a list, its objects decoded as ``T``."""

    metadata: ListMetadata
    items: list[T] | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Some objects of a collection, and the resource version of the whole collection."""

    items: list[Json]
    resource_version: str


def decoded(request: ApiRequest, content: bytes, shape: type[T]) -> T:
    """Raises ``UnreachableError`` for what cannot be read: a proxy may answer 200 with a page of its own."""
    try:
        return msgspec.json.decode(content, type=shape)
    except UNREADABLE_JSON as error:
        raise UnreachableError(f"{request}: the answer cannot be read: {error}") from error


def refusal(response: HttpResponse) -> ApiError:
    """Returns the error in a response. Source: ``metav1.Status``; a proxy may send any other body."""
    try:
        status = msgspec.json.decode(response.content)
        reason, message = str(status.get("reason", "")), str(status.get("message", ""))
    except (*UNREADABLE_JSON, AttributeError):
        reason, message = "", response.content[:300].decode(errors="replace")
    after = retry_after_seconds(response.status, response.retry_after)
    return ApiError(response.status, reason, message, retry_after=after)
