"""Time for the extender's tests: it passes only by sleeping, and then at once."""

import asyncio


class FakeClock:
    """Seconds."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)


class HandClock(FakeClock):
    """Sleepers go on when a test says so."""

    async def sleep(self, seconds: float) -> None:
        due = self.now + seconds
        while self.now < due:  # noqa: ASYNC110 - time has no events of its own
            await asyncio.sleep(0.001)
