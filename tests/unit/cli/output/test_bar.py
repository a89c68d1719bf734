"""Bars never lie: something held shows, something free shows."""

from gpushare_cli.output.bar import held_bar, held_cells
from gpushare_cli.output.page import OutputPage


def test_a_bar_shows_how_much_is_held() -> None:
    page = OutputPage(width=80)
    assert held_bar(held=5, total=10, page=page, width=4).plain == "██░░"
    assert held_bar(held=5, total=10, page=OutputPage(width=80, is_ascii=True), width=4).plain == "##.."


def test_the_smallest_share_shows_at_either_end() -> None:
    assert held_cells(held=0, total=1000) == 0
    assert held_cells(held=1, total=1000) == 1
    assert held_cells(held=999, total=1000) == 9
    assert held_cells(held=1000, total=1000) == 10
    assert held_cells(held=1001, total=1000) == 10
    assert held_cells(held=3, total=0) == 0
