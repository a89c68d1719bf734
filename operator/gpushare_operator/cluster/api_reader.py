"""The calls to the API server that read."""

from collections.abc import AsyncIterator
from typing import Protocol

from gpushare_core.kube.response import Page
from gpushare_core.text.json_object import Json


class ApiReader(Protocol):
    """What ``KubeClient`` has of them."""

    async def create(self, path: str, body: Json) -> Json:
        """Of a review, which stores nothing."""

    async def get(self, path: str) -> Json: ...

    def pages(
        self, path: str, *, limit: int, label_selector: str = "", field_selector: str = ""
    ) -> AsyncIterator[Page]: ...
