"""What is free goes back to the system."""

from multiprocessing import get_context
from pathlib import Path

from gpushare_core.process.malloc import LARGE, give_back, limit_malloc_arenas


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def _kept_after_large_blocks() -> int:
    """Returns the bytes that this process has more than before."""
    assert limit_malloc_arenas()
    before = _resident()
    for size in (16 * LARGE, 64 * LARGE, 16 * LARGE):
        blocks = [b"x" * size for _ in range(4)]
        del blocks
    return _resident() - before


def test_large_blocks_are_given_back_when_they_are_freed() -> None:
    """In a process of its own: the options last as long as it does."""
    with get_context("spawn").Pool(1) as pool:
        assert pool.apply(_kept_after_large_blocks) < 8 * LARGE


def _kept_between_blocks() -> int:
    """Returns the bytes that this process has more than before, of blocks between which some stay."""
    before, size = _resident(), LARGE // 128
    blocks = [b"x" * size for _ in range(8000)]
    kept = blocks[::16]
    blocks.clear()
    give_back()
    assert len(kept) == 500
    return _resident() - before


def test_what_is_free_between_blocks_is_given_back() -> None:
    with get_context("spawn").Pool(1) as pool:
        assert pool.apply(_kept_between_blocks) < 16 * 2**20
