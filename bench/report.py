"""What ``make bench`` prints: the Markdown tables of docs/benchmarks.md."""

from collections.abc import Mapping, Sequence

from bench.footprint import Footprint
from bench.percentiles import Percentiles
from bench.schedule_throughput import Throughput


def show_latency(milliseconds: Mapping[str, Sequence[float]]) -> None:
    """``milliseconds`` of each pod, by kind of pod."""
    rows = [
        [kind, len(numbers), *_milliseconds(Percentiles.of(numbers))]
        for kind, numbers in milliseconds.items()
    ]
    _show("Create to Running", ["pod", "pods", "p50 ms", "p99 ms", "max ms"], rows)


def show_footprint(footprints: Sequence[Footprint]) -> None:
    rows = [
        [footprint.container, footprint.node, f"{footprint.resident:.1f}", f"{footprint.peak:.1f}"]
        for footprint in footprints
    ]
    _show("Resident size", ["process", "node", "MiB", "peak MiB"], rows)


def show_throughput(nodes: int, throughputs: Mapping[str, Throughput]) -> None:
    """``throughputs`` by scheduler."""
    rows = [
        [
            scheduler,
            throughput.bound,
            f"{throughput.rate:.0f}",
            f"{throughput.wait.p50 * 1e3:.0f}",
            f"{throughput.wait.p99 * 1e3:.0f}",
        ]
        for scheduler, throughput in throughputs.items()
    ]
    header = ["scheduler", "pods", "pods/s", "create to bound p50 ms", "p99 ms"]
    _show(f"Throughput at {nodes} nodes", header, rows)


def _milliseconds(percentiles: Percentiles) -> list[str]:
    return [f"{value:.0f}" for value in (percentiles.p50, percentiles.p99, percentiles.highest)]


def _show(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    print(f"\n### {title}\n\n{_markdown(header, rows)}", flush=True)


def _markdown(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Returns a Markdown table, columns padded so that it reads well in a terminal too."""
    cells = [[str(cell) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = [_line(row, widths) for row in cells]
    return "\n".join([lines[0], _line(["-" * width for width in widths], widths), *lines[1:]])


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
    return f"| {' | '.join(padded)} |"
