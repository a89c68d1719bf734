"""The page in a real browser where it gets no figures, or old ones: what it says, and when it goes on."""

import asyncio
import time

import pytest
from aiohttp import web
from tests.component.web.served import WITHIN, opened, served
from tests.fakes.chromium import Tab
from tests.fakes.web_cluster import WebCluster
from tests.fakes.web_page import READY, figures
from tests.samples.shared_cards import card, share, share_node_object

from gpushare_cli.web import server
from gpushare_cli.web.server import PageServer
from gpushare_core.kube.paths import SHARE_NODES


async def test_a_page_that_nobody_sees_takes_no_connection(tab: Tab, cluster: WebCluster) -> None:
    """A browser makes six to an address: a seventh page would show nothing."""
    see = (
        "(hidden) => { Object.defineProperty(document, 'hidden', { configurable: true, get: () => hidden });"
    )
    see += " document.dispatchEvent(new Event('visibilitychange')); }"
    async with opened(cluster, tab) as page:
        async with asyncio.timeout(WITHIN):
            await page.publication.wanted.wait()
        await tab.evaluate(f"({see})(true)")
        async with asyncio.timeout(WITHIN):
            while page.publication.wanted.is_set():
                page.publication.publish(extra=str(time.monotonic()).encode())
                await asyncio.sleep(0.05)
        cluster.put(SHARE_NODES, share_node_object("gpu-2", card(0, 16, share("a/b", 1), node="gpu-2")))
        await tab.evaluate(f"({see})(false)")
        await tab.until("document.querySelector('#figures').innerText.includes('11/48')")
        assert await tab.evaluate("document.getElementById('banner').hidden")
        assert tab.complaints() == []


async def test_what_is_not_renewed_is_marked_as_old(tab: Tab, cluster: WebCluster) -> None:
    async with opened(cluster, tab):
        assert await tab.evaluate("document.getElementById('banner').hidden")
        await tab.evaluate("(() => { const now = Date.now; Date.now = () => now() + 120_000; })()")
        await tab.until("document.getElementById('banner').innerText.includes('Nothing new is heard')")
        assert "Figures are of" in await tab.text("#banner")
        alert = await tab.text("[role=alert]")
        assert alert == "Nothing new is heard", "a screen reader would say the age each second"


async def test_figures_that_are_being_read_again_are_no_alarm(tab: Tab, cluster: WebCluster) -> None:
    """Each page begins so where nobody has looked for a while."""
    async with served(cluster) as page:
        await tab.open(f"{page.guard.url}?demo=3")
        await tab.until(READY)
        for trouble, looks in (("Paused", ""), ("Late", "alarm")):
            name = await tab.evaluate(
                f"(() => {{ gpusharePage.cluster.parts.freshness.trouble = '{trouble}';"
                " gpusharePage.freshness(); return document.getElementById('banner').className; })()"
            )
            assert name == looks


async def test_an_expired_login_is_shown_and_goes_away(cluster: WebCluster, tab: Tab) -> None:
    async with opened(cluster, tab):
        assert await tab.evaluate("document.getElementById('banner').hidden")
        await tab.click('#waiting [data-pod="team-b/large"]')
        await tab.until("document.querySelector('#detail .answer')")
        cluster.refused = 401
        await tab.until("document.getElementById('banner').innerText.includes('The login has expired')")
        faint = (
            "['#detail', '#waiting', '#stage'].map((each) => { let found = 1;"
            " for (let e = document.querySelector(each); e; e = e.parentElement)"
            " found *= Number(getComputedStyle(e).opacity); return found < 1; })"
        )
        assert await tab.evaluate(faint) == [False, True, True], "why was answered by the cluster itself"
        said = await tab.text("#banner")
        assert "Figures are of" in said
        assert "Log in again" in said
        assert (await figures(tab))[1].startswith("10/48"), "they stay"
        cluster.refused = 0
        await tab.until("document.getElementById('banner').hidden")


async def test_an_api_server_that_is_gone_is_shown_and_comes_back(cluster: WebCluster, tab: Tab) -> None:
    async with opened(cluster, tab):
        await cluster.stop()
        await tab.until("document.getElementById('banner').innerText.includes('is not reached')")
        cluster.put(SHARE_NODES, share_node_object("gpu-2", card(0, 16, share("a/b", 1), node="gpu-2")))
        await cluster.start()
        await tab.until("document.getElementById('banner').hidden")
        await tab.until("document.querySelector('#figures').innerText.includes('11/48')")


async def test_a_program_that_has_ended_is_shown(cluster: WebCluster, tab: Tab) -> None:
    async with opened(cluster, tab):
        pass
    await tab.until("document.getElementById('banner').innerText.includes('Nobody answers')")


async def test_a_page_too_many_asks_for_a_place_and_not_for_everything(
    cluster: WebCluster, tab: Tab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A snapshot of a large cluster is tens of megabytes."""
    asked: list[str] = []
    handle = PageServer.handle

    async def noted(page: PageServer, request: web.BaseRequest) -> web.StreamResponse:
        asked.append(request.path.rpartition("/")[2])
        return await handle(page, request)

    monkeypatch.setattr(PageServer, "handle", noted)
    monkeypatch.setattr(server, "MAX_CLIENTS", 0)
    async with opened(cluster, tab):
        await tab.until("document.getElementById('banner').innerText.includes('This page gets nothing')")
        assert "Too many pages are open" in await tab.text("#banner")
        async with asyncio.timeout(WITHIN):
            while asked.count("events") < 3:  # noqa: ASYNC110  a number alone says it
                await asyncio.sleep(0.05)
        monkeypatch.setattr(server, "MAX_CLIENTS", 1)
        await tab.until("document.getElementById('banner').hidden")
        assert asked.count("snapshot") == 1


async def test_a_browser_with_another_clock_sees_no_old_figures(cluster: WebCluster, tab: Tab) -> None:
    """Such as one behind an SSH tunnel."""
    ahead = "const now = Date.now; Date.now = () => now() + 600_000;"
    await tab.send("Page.addScriptToEvaluateOnNewDocument", source=ahead)
    async with opened(cluster, tab):
        await tab.evaluate("gpusharePage.freshness()")
        assert await tab.text("#banner") == ""


async def test_a_mistake_of_the_page_is_not_called_a_missing_answer(cluster: WebCluster, tab: Tab) -> None:
    broken = "{ get: () => { throw new Error('broken'); } }"
    script = f"Object.defineProperty(Intl.NumberFormat.prototype, 'format', {broken});"
    await tab.send("Page.addScriptToEvaluateOnNewDocument", source=script)
    async with served(cluster) as page:
        await tab.open(page.guard.url)
        async with asyncio.timeout(WITHIN):
            await page.publication.wanted.wait()
        assert await tab.text("#banner") == ""
    assert "broken" in str(tab.complaints())


async def test_a_program_that_has_ended_does_not_answer_why(cluster: WebCluster, tab: Tab) -> None:
    async with opened(cluster, tab):
        pass
    await tab.until("!document.getElementById('banner').hidden")
    await tab.click('#waiting [data-pod="team-b/large"]')
    await tab.until("document.querySelector('#detail .answer')")
    assert "kubectl gpushare web does not answer" in await tab.text("#detail")
