"""Rows ``memory`` and ``filter``: one extender with a whole cluster in its books, called as in earnest."""

from bench import filter_latency
from bench.measuring.figures import Figure, at_most
from bench.rows.programs.extender_process import described, layout_of
from bench.rows.programs.workplace import Workplace

MAX_MIB = 96.0
MAX_START = 2.0
"""Seconds to the first right answer."""


async def memory(workplace: Workplace) -> list[Figure]:
    """What its books take, and how soon they are complete."""
    use = await workplace.extender()
    what = described(layout_of(workplace.size))
    return [
        Figure(f"extender, {what}", use.after.resident, "MiB", at_most(MAX_MIB)),
        Figure(f"extender, {what}: before any call but the first", use.before.resident, "MiB"),
        Figure(f"extender, {what}: peak", use.after.peak, "MiB"),
        Figure(f"start to first right answer, {what}", use.started, "s", at_most(MAX_START)),
        Figure("until then", use.before.cpu, "s of CPU"),
    ]


async def filters(workplace: Workplace) -> list[Figure]:
    """The filter over one connection of HTTP/2 with mutual TLS; each answer is checked."""
    use = await workplace.extender()
    few, every = use.few, use.every
    return [
        *_percentiles(f"filter, {few.names} of {every.names:,} names", few, p50=0.5, p99=2.0),
        *_percentiles(f"filter, all {every.names:,} names", every, p50=2.0, p99=6.0),
    ]


def _percentiles(what: str, latency: filter_latency.FilterLatency, *, p50: float, p99: float) -> list[Figure]:
    taken = latency.milliseconds
    return [
        Figure(f"{what}: p50", taken.p50, "ms", at_most(p50)),
        Figure(f"{what}: p99", taken.p99, "ms", at_most(p99)),
    ]
