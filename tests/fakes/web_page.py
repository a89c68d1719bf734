"""What a browser shows of the page of ``kubectl gpushare web``, and how long it takes to draw it."""

from typing import NamedTuple

from tests.fakes.chromium import Tab

READY = "document.querySelectorAll('#figures dd').length === 4 && gpusharePage.cluster.nodes.size > 0"
COLORS = ("held", "used", "health", "class", "namespace")
ROUNDS = 11
REDRAWS = """(async () => {
  const page = globalThis.gpusharePage, times = { change: [], map: [] };
  const flush = () => document.getElementById('canvas').getContext('2d').getImageData(0, 0, 1, 1);
  for (let round = 0; round < %d; round += 1) {
    const message = page.feed.demo.change(), began = performance.now();
    page.draw(page.cluster.apply(message)); flush();
    times.change.push(performance.now() - began);
    const drawn = performance.now(); page.map.draw(); flush();
    times.map.push(performance.now() - drawn);
    await new Promise((done) => setTimeout(done, 20));
  }
  return times;
})()"""


class Redraws(NamedTuple):
    """Milliseconds of each round."""

    change: list[float]
    """From the message of a change until the page can be read."""
    map: list[float]
    """Of drawing the map alone."""


async def figures(tab: Tab) -> list[str]:
    """Returns the figures at the top of the page."""
    found: list[str] = await tab.evaluate(
        "[...document.querySelectorAll('#figures > div')].map((e) => ['dd', 'dt'].map("
        "(part) => e.querySelector(part).innerText).join(' '))"
    )
    return found


async def table_rows(tab: Tab) -> list[list[str]]:
    """Returns the cells of the rows that the table has drawn."""
    found: list[list[str]] = await tab.evaluate(
        "[...document.querySelectorAll('.row')].map((row) => [...row.children].map((cell) => cell.innerText))"
    )
    return found


async def redraws(tab: Tab, color: str) -> Redraws:
    """Draws changes of the made-up cluster (``?demo``), which the tab shows, with the map's cells in one of
    ``COLORS``."""
    await tab.evaluate(f"gpusharePage.go({{color: '{color}'}})")
    return Redraws(**await tab.evaluate(REDRAWS % ROUNDS))
