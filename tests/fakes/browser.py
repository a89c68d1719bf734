"""Fixtures: a browser for a module, and a tab of it for each test."""

from collections.abc import AsyncIterator, Iterator

import pytest
from tests.fakes.chromium import Tab, new_tab, running_chromium

from gpushare_localcluster.errors import LocalClusterError


@pytest.fixture(scope="module")
def chromium() -> Iterator[str]:
    try:
        with running_chromium() as address:
            yield address
    except LocalClusterError as error:
        pytest.skip(f"no Chromium: {error}")


@pytest.fixture
async def tab(chromium: str) -> AsyncIterator[Tab]:
    async with new_tab(chromium) as tab:
        yield tab
