"""What is seen of the page in a browser."""

from tests.fakes.chromium import Tab

READY = "document.querySelectorAll('#figures dd').length === 4 && gpusharePage.cluster.nodes.size > 0"


async def figures(tab: Tab) -> list[str]:
    found: list[str] = await tab.evaluate(
        "[...document.querySelectorAll('#figures > div')].map((e) => ['dd', 'dt'].map("
        "(part) => e.querySelector(part).innerText).join(' '))"
    )
    return found
