"""What is said of the page of ``kubectl gpushare web``."""

from bench.cluster.cluster_objects import Layout
from bench.readings.process_use import ProcessUse
from bench.rows.programs.web_page import PageUse, figures_of
from tests.fakes.web_page import Redraws

SERVER = ProcessUse(cpu=1.0, resident=149.0, peak=151.0)


def test_the_median_and_the_longest_redraw_of_all_colours_count() -> None:
    taken = [Redraws(change=[20.0, 30.0], map=[9.0, 8.0]), Redraws(change=[51.0], map=[7.0])]
    page = PageUse(redraws=taken, heap=40.0, private=150.5)
    figures = figures_of(page, SERVER, Layout(nodes=5000))
    assert [(figure.what, figure.measured, figure.reached) for figure in figures] == [
        ("redraw after a change, 5,000 nodes x 8 cards: median", 30.0, True),
        ("the same: longest", 51.0, False),
        ("the same: shortest", 20.0, None),
        ("the map alone: median", 8.0, None),
        ("page, 5,000 nodes x 8 cards", 150.5, False),
        ("its heap of JavaScript", 40.0, None),
        ("server, 5,000 nodes and 40,000 pods, one page", 149.0, True),
        ("server: peak", 151.0, None),
    ]
