"""What every test of one process has."""

import pytest

from gpushare_extender import extender


@pytest.fixture(autouse=True)
def no_collection_at_each_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """An extender within this process would have all that pytest holds looked at: seconds, for each list."""
    monkeypatch.setattr(extender, "freeze_gc", lambda: None)


@pytest.fixture(autouse=True)
def no_repair_of_silent_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that waits as long as it may would not notice a watch that misses what happens."""
    monkeypatch.setattr("gpushare_core.kube.follow.IDLE_SECONDS", 3600.0)
