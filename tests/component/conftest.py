"""What every test of one process has."""

import pytest

from gpushare_extender import extender


@pytest.fixture(autouse=True)
def no_collection_at_each_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """An extender within this process would have all that pytest holds looked at: seconds, for each list."""
    monkeypatch.setattr(extender, "freeze_gc", lambda: None)
