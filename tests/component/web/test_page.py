"""The page in a real browser: what is seen, clicked and typed, and what it costs."""

import asyncio
import itertools
import json
from typing import Any

from tests.component.web.conftest import MARKUP, RACK
from tests.component.web.served import opened, served
from tests.fakes.chromium import Tab
from tests.fakes.web_cluster import WebCluster
from tests.fakes.web_page import COLORS, READY, figures, redraws, table_rows
from tests.samples.shared_cards import card, pending_pod_object, share, share_node_object

from gpushare_core.kube.paths import PODS, POLICIES, SHARE_NODES
from gpushare_core.text.json_object import Json

PAGE_BYTES = 150 * 2**20
PIXELS = """(() => { const c = document.getElementById('canvas');
  const data = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; const found = new Set();
  for (let at = 0; at < data.length; at += 4) found.add(data[at] << 16 | data[at + 1] << 8 | data[at + 2]);
  return found.size; })()"""
"""How many colours the map has."""


async def hash_of(tab: Tab) -> str:
    return str(await tab.evaluate("location.hash"))


def silent_node(name: str, message: str) -> Json:
    """A GPUShareNode with a card, whose plugin does not report."""
    node = share_node_object(name, card(0, 16, node=name))
    node["status"]["conditions"] = [
        {"type": "Registered", "status": "False", "reason": "PluginSilent", "message": message}
    ]
    return node


async def test_at_first_sight(cluster: WebCluster, tab: Tab) -> None:
    async with served(cluster, rack_label=RACK) as page:
        await tab.open(page.guard.url)
        await tab.until(READY)
        assert await figures(tab) == [
            "3 cards on 2 nodes, 1 sick",
            "10/48 units of 1Gi held, 21%",
            "1 pod waits",
            "2 problems",
        ]
        assert "team-b/large" in await tab.text("#waiting")
        assert "17 memory" in await tab.text("#waiting")
        assert "the card is sick" in await tab.text("#problems")
        assert await tab.evaluate(PIXELS) > 5
        assert await tab.evaluate("document.getElementById('group').value") == RACK
        assert await tab.text("#where") == "https://cluster.example"
        assert tab.complaints() == []


async def test_views_and_filters_live_in_the_address(cluster: WebCluster, tab: Tab) -> None:
    async with served(cluster, rack_label=RACK) as page:
        await tab.open(f"{page.guard.url}#view=table")
        await tab.until(READY)
        assert await tab.evaluate("document.querySelectorAll('.row').length") == 3
        await tab.click("#query")
        await tab.type("train")
        await tab.until("document.querySelectorAll('.row').length === 1")
        assert "query=train" in await hash_of(tab)
        assert (await figures(tab))[0] == "1 card found on 1 node"
        await tab.click("#views [data-value=map]")
        await tab.click("#colors [data-value=health]")
        assert await hash_of(tab) == "#color=health&query=train"
        assert "sick" in await tab.text("#legend")
        await tab.evaluate("history.back()")
        await tab.until("!location.hash.includes('health')")
        await tab.until("document.querySelector('#colors [aria-pressed=true]').dataset.value === 'held'")
        await tab.open(f"{page.guard.url}#namespace=team-a&show=held")
        await tab.until("document.querySelector('#figures dd')?.innerText === '1'")
        assert await tab.evaluate("document.getElementById('namespace').value") == "team-a"
        assert tab.complaints() == []


async def test_a_click_on_a_pod_that_waits_says_why(cluster: WebCluster, tab: Tab) -> None:
    async with opened(cluster, tab) as page:
        await tab.click('#waiting [data-pod="team-b/large"]')
        await tab.until("document.querySelector('#detail .answer')")
        said = await tab.text("#detail")
        assert "no card has 17 units" in said
        assert "What would help" in said
        assert "why=team-b/large" in await hash_of(tab)
        await tab.press("Escape")
        await tab.until("document.getElementById('detail').hidden")
        await tab.open(f"{page.guard.url}#why=team-b/gone")
        await tab.until("document.querySelector('#detail .answer')")
        assert "there is no pod gone in namespace team-b" in await tab.text("#detail")


async def test_a_command_of_several_lines_keeps_them(cluster: WebCluster, tab: Tab) -> None:
    cluster.objects[POLICIES].clear()
    async with opened(cluster, tab):
        code = await tab.evaluate("[...document.querySelectorAll('#problems code')].map((e) => e.innerText)")
        assert any("kind: GPUSharePolicy\nmetadata:" in text for text in code)


async def test_a_click_on_the_map_shows_the_card(cluster: WebCluster, tab: Tab) -> None:
    async with opened(cluster, tab):
        x, y = await tab.evaluate(
            "(() => { const b = document.getElementById('canvas').getBoundingClientRect();"
            " return [b.x + 2 + 60, b.y + 2 + 10]; })()"
        )
        await tab.click_at(x, y)
        await tab.until("!document.getElementById('detail').hidden")
        assert "gpu-1, card 0" in await tab.text("#detail")
        assert "team-a/train-1" in await tab.text("#detail")
        assert "team-a/train-1: 10" in await tab.text("#tip")
        await tab.click('#detail [data-pod="team-a/train-1"]')
        await tab.until("location.hash.includes('why=team-a/train-1')")


async def test_a_pod_that_starts_is_seen_at_once(cluster: WebCluster, tab: Tab) -> None:
    async with opened(cluster, tab):
        before = await figures(tab)
        cluster.put(
            SHARE_NODES, share_node_object("gpu-2", card(0, 16, share("team-b/new", 4), node="gpu-2"))
        )
        cluster.delete(PODS, "team-b/large")
        await tab.until("document.querySelector('#figures').innerText.includes('14/48')")
        await tab.until("document.querySelector('#waiting').innerText.includes('No pod waits')")
        assert before[1].startswith("10/48")
        assert tab.complaints() == []


async def test_names_never_become_html(cluster: WebCluster, tab: Tab) -> None:
    held = share(f"{MARKUP.replace('/', '')}/{MARKUP}", 3)
    evil = share_node_object(
        MARKUP, card(0, 16, held, node=MARKUP, model=MARKUP, health=MARKUP, healthReason=MARKUP)
    )
    cluster.put_node(evil, **{RACK: MARKUP})
    cluster.put(PODS, pending_pod_object(f"team-b/{MARKUP}", 17, message=MARKUP))
    async with served(cluster, rack_label=RACK) as page:
        for view in (
            "",
            "view=table",
            f"card={MARKUP}/0",
            f"why=team-b/{MARKUP}",
            f"query={MARKUP}",
            "color=namespace",
        ):
            await tab.open("about:blank")
            await tab.open(f"{page.guard.url}#{view}")
            await tab.until(READY)
            await asyncio.sleep(0.2)
            assert MARKUP in await tab.text("body")
            assert await tab.evaluate("document.querySelectorAll('img, main script, [onerror]').length") == 0
        assert tab.complaints() == []


async def test_the_table_is_for_keyboards_and_screen_readers(tab: Tab, cluster: WebCluster) -> None:
    async with served(cluster) as page:
        await tab.open(f"{page.guard.url}?demo=600")
        await tab.until(READY)
        await tab.press("Tab")
        assert await tab.evaluate("document.activeElement.id") == "skip"
        await tab.press("Enter")
        await tab.until("document.activeElement.dataset.at === '0'")
        assert await tab.evaluate("document.querySelectorAll('.row').length") < 100
        await tab.press("ArrowDown")
        await tab.until("document.activeElement.dataset.at === '1'")
        await tab.press("End")
        await tab.until("document.activeElement.dataset.at === '4799'")
        assert await tab.evaluate("document.activeElement.getAttribute('aria-rowindex')") == "4801"
        assert await tab.evaluate("document.querySelector('[role=table]').ariaRowCount") == "4801"
        await tab.press("Enter")
        await tab.until("!document.getElementById('detail').hidden")
        await tab.click(".c-held button")
        await tab.until("document.querySelector('[aria-sort=descending]')?.innerText.startsWith('Held')")
        nameless: list[str] = await tab.evaluate(
            "[...document.querySelectorAll('button, select, input, canvas')].filter((e) => !(e.innerText"
            " || e.ariaLabel || e.labels?.[0]?.innerText || e.ariaHidden)).map((e) => e.outerHTML)"
        )
        assert nameless == []


async def test_a_row_of_the_table_stays_while_others_change(tab: Tab, cluster: WebCluster) -> None:
    """Its text can be marked, and it keeps the focus when it is scrolled out of sight."""
    async with served(cluster) as page:
        await tab.open(f"{page.guard.url}?demo=600#view=table")
        await tab.until(READY)
        await tab.evaluate(
            "gpusharePage.feed.demo.change = () => ({ version: 2, nodes: [], removed: [], parts: {} })"
        )
        await tab.evaluate("gpusharePage.table.focus()")
        await tab.press("ArrowDown")
        stayed = await tab.evaluate(
            "(() => { const rows = [...document.querySelectorAll('.row')], { cluster } = gpusharePage;"
            " const { name } = cluster.ordered[1];"
            " const nodes = [{ name, cards: [{ index: 0, uuid: 'GPU-0' }] }];"
            " gpusharePage.draw(cluster.apply({ version: 3, removed: [], parts: {}, nodes }));"
            " return rows.map((row) => row.isConnected); })()"
        )
        assert stayed[:8] == [True] * 8, "of the node before"
        assert stayed[8] is False
        focused = await tab.evaluate("document.activeElement.innerText")
        await tab.evaluate("document.querySelector('.scroll').scrollTop = 20000")
        await tab.until("document.querySelector('[data-at=\"720\"]')")
        assert await tab.evaluate("document.activeElement.innerText") == focused
        await tab.press("ArrowDown")
        await tab.until("document.querySelector('.scroll').scrollTop < 1000")


async def test_the_table_needs_no_scrolling_to_the_side(tab: Tab, cluster: WebCluster) -> None:
    async with served(cluster) as page:
        await tab.resize(1440, 900)
        await tab.open(f"{page.guard.url}?demo=40#view=table")
        await tab.until(READY)
        beyond = "(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)"
        assert await tab.evaluate(f"{beyond}(document.querySelector('.scroll'))") == 0


async def test_a_made_up_cluster_has_a_size_that_a_browser_can_show(tab: Tab, cluster: WebCluster) -> None:
    async with served(cluster) as page:
        for asked, count in (("-5", 1), ("2.9", 2), ("1e12", 20_000)):
            await tab.open(f"{page.guard.url}?demo={asked}")
            await tab.until(READY)
            assert await tab.evaluate("gpusharePage.cluster.nodes.size") == count


async def test_dark_and_light_follow_the_system_until_one_is_chosen(tab: Tab, cluster: WebCluster) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    async with served(cluster) as page:
        await tab.prefer("dark")
        await tab.open(page.guard.url)
        await tab.until(READY)
        dark = await tab.evaluate(paper)
        await tab.click("#theme")
        light = await tab.evaluate(paper)
        assert dark != light
        await tab.open(page.guard.url)
        await tab.until(READY)
        assert await tab.evaluate(paper) == light


async def test_a_command_is_not_broken_at_a_hyphen_and_says_when_it_is_copied(
    cluster: WebCluster, tab: Tab
) -> None:
    async with served(cluster) as page:
        await tab.resize(1280, 760)
        await tab.open(page.guard.url)
        await tab.until(READY)
        lines = await tab.evaluate(
            "[...document.querySelectorAll('#problems code span')].map((e) => e.getClientRects().length)"
        )
        assert set(lines) == {1}
        await tab.evaluate("navigator.clipboard.writeText = async (text) => { globalThis.written = text; }")
        # The moment for which it says so ends when the test says.
        await tab.evaluate("globalThis.due = [], globalThis.setTimeout = (call) => due.push(call)")
        await tab.click("#problems .copy")
        assert await tab.text("#problems .copy") == "Copied"
        page.publication.publish(problems=page.publication.state._parts["problems"][1] + b" ")
        await asyncio.sleep(0.3)
        assert await tab.text("#problems .copy") == "Copied", "though the list has come anew"
        await tab.evaluate("due.forEach((call) => call())")
        await tab.until("document.querySelector('#problems .copy').innerText === 'Copy'")
        command = await tab.text("#problems code")
        assert await tab.evaluate("globalThis.written") == command


async def test_the_filters_hold_for_pods_that_wait_too(cluster: WebCluster, tab: Tab) -> None:
    cluster.put(PODS, pending_pod_object("team-c/other", 17))
    async with served(cluster) as page:
        for hash_, count, seen in (
            ("query=team-c", "1 of 2", "team-c/other"),
            ("namespace=team-b", "1 of 2", "team-b/large"),
            ("namespace=team-b&query=other", "0 of 2", "None of them matches the filters."),
            ("namespace=team-a", "0 of 2", "None of them matches the filters."),
            ("show=free", "2", "team-b/large"),
        ):
            await tab.open("about:blank")
            await tab.open(f"{page.guard.url}#{hash_}")
            await tab.until(READY)
            assert await tab.text("#waiting-title") == f"Waiting {count}", hash_
            assert seen in await tab.text("#waiting"), hash_


async def test_pods_whose_names_differ_at_the_end_can_be_told_apart(cluster: WebCluster, tab: Tab) -> None:
    for end in ("x2x7q", "b8k4z"):
        cluster.put(PODS, pending_pod_object(f"team-b/a-trainer-with-a-long-name-5d8f7c9b6d-{end}", 17))
    ends = """(() => [...document.querySelectorAll('#waiting .name')].map((name) => {
      const range = document.createRange(), edge = name.getBoundingClientRect().right;
      range.selectNodeContents(name.lastChild);
      return range.getBoundingClientRect().right <= edge + 1 ? name.lastChild.data : 'cut';
    }))()"""
    async with opened(cluster, tab):
        await tab.resize(1280, 900)
        assert sorted(await tab.evaluate(ends)) == ["-b8k4z", "-x2x7q", "large"]
        assert "team-b/a-trainer-with-a-long-name-5d8f7c9b6d-x2x7q" in await tab.text("#waiting")


async def test_a_namespace_whose_pods_only_wait_can_be_chosen(cluster: WebCluster, tab: Tab) -> None:
    options = "[...document.getElementById('namespace').options].map((option) => option.value)"
    async with opened(cluster, tab):
        assert await tab.evaluate(options) == ["", "team-a", "team-b"]


async def test_of_pods_beyond_the_list_it_is_not_said_how_many_match(cluster: WebCluster, tab: Tab) -> None:
    async with opened(cluster, tab):
        await tab.evaluate(
            "gpusharePage.cluster.parts.waiting.total = 5000, gpusharePage.go({ namespace: 'team-b' })"
        )
        assert await tab.text("#waiting-title") == "Waiting 1+ of 5,000"
        await tab.evaluate("gpusharePage.go({ namespace: 'team-a' })")
        assert await tab.text("#waiting-title") == "Waiting ? of 5,000"
        assert "None of the 1 oldest matches" in await tab.text("#waiting")


async def test_the_link_of_a_problem_finds_its_node_alone(cluster: WebCluster, tab: Tab) -> None:
    """Whatever filter is on, and wherever the page is scrolled to."""
    for name in ("gpu-1", "gpu-10"):
        cluster.put_node(silent_node(name, "the plugin does not report"))
    async with served(cluster) as page:
        await tab.resize(400, 500)
        await tab.open(f"{page.guard.url}#namespace=team-b&show=held")
        await tab.until(READY)
        await tab.click("#problems .place")
        assert (await figures(tab))[0].startswith("1 card found on 1 node")
        await tab.evaluate("gpusharePage.go({ view: 'table' })")
        assert [row[0] for row in await table_rows(tab)] == ["gpu-1"]
        top = await tab.evaluate("document.getElementById('stage').getBoundingClientRect().top")
        assert 0 <= top < 500


async def test_a_line_breaks_beside_a_name_and_not_in_it(cluster: WebCluster, tab: Tab) -> None:
    name = "ip-10-23-104-17.eu-central-1.compute.internal"
    cluster.put_node(silent_node("gpu-1", f"no report from {name} since the last start of it"))
    lines = """((name) => [...document.querySelectorAll('#problems p, #detail p')].flatMap((text) => {
      const found = [], walker = document.createTreeWalker(text, NodeFilter.SHOW_TEXT);
      if (!text.checkVisibility()) return found;
      for (let node; (node = walker.nextNode()); ) {
        const at = node.data.indexOf(name);
        if (at < 0) continue;
        const range = document.createRange();
        range.setStart(node, at), range.setEnd(node, at + name.length);
        found.push(new Set([...range.getClientRects()].map((box) => box.top)).size);
      }
      return found;
    }))"""
    async with served(cluster) as page:
        for width in (360, 1181, 1280, 1440):
            await tab.resize(width, 900)
            await tab.open("about:blank")
            await tab.open(page.guard.url)
            await tab.until(READY)
            assert await tab.evaluate(f"{lines}('{name}')") == [1]
        await tab.click('#waiting [data-pod="team-b/large"]')
        await tab.until("document.querySelector('#detail .answer')")
        assert set(await tab.evaluate(f"{lines}('{name}')")) == {1}
        assert "no report from ip-10-" in await tab.text("#detail"), "it is text as before"


async def test_a_narrow_window_shows_all_of_the_page(cluster: WebCluster, tab: Tab) -> None:
    """One below the other, and why above the map, where it is seen though the pod was clicked far below."""
    heights = (
        "['#map, #table', '#waiting .list', '#problems .list'].map((each) =>"
        " [...document.querySelectorAll(each)].filter((e) => !e.hidden)[0].getBoundingClientRect())"
        ".map((box) => [box.top + scrollY, box.height])"
    )
    async with served(cluster) as page:
        await tab.resize(400, 900)
        for view in ("map", "table"):
            await tab.open("about:blank")
            await tab.open(f"{page.guard.url}#view={view}")
            await tab.until(READY)
            boxes = await tab.evaluate(heights)
            assert all(20 < height < 700 for _, height in boxes), boxes
            content = await tab.evaluate("document.getElementById('spacer').offsetHeight")
            assert view == "table" or boxes[0][1] == content, "nothing below it is empty"
            assert boxes == sorted(boxes), "in this order"
            assert all(top + height <= after for (top, height), (after, _) in itertools.pairwise(boxes)), (
                boxes
            )
            await tab.click('#waiting [data-pod="team-b/large"]')
            await tab.until("document.querySelector('#detail .answer')")
            top, height = await tab.evaluate(
                "(({ top, height }) => [top, height])"
                "(document.querySelector('#detail').getBoundingClientRect())"
            )
            assert (-1 <= top < 450, height > 200) == (True, True), (top, height)
        assert await tab.evaluate("document.documentElement.scrollWidth") == 400


async def test_the_longest_names_fit_a_narrow_window(cluster: WebCluster, tab: Tab) -> None:
    node = ".".join(["a-label-of-a-subdomain"] * 11)
    held = share(f"{'n' * 63}/{'p' * 253}", 10)
    cluster.put_node(share_node_object(node, card(0, 16, held, node=node)), **{RACK: "r" * 63})
    box = "((each) => document.querySelector(each).getBoundingClientRect())"
    async with served(cluster, rack_label=RACK) as page:
        for width in (360, 900, 1440):
            await tab.resize(width, 900)
            for view in (f"card={node}/0", f"view=table&namespace={'n' * 63}", "color=namespace"):
                await tab.open("about:blank")
                await tab.open(f"{page.guard.url}#{view}")
                await tab.until(READY)
                assert await tab.evaluate("document.documentElement.scrollWidth") == width, view
                figures_end = await tab.evaluate(f"{box}('#figures > div:last-child dt').right")
                begin = await tab.evaluate(f"{box}('.clock').left")
                assert width < 860 or figures_end < begin, "they do not touch"
            await tab.evaluate(f"gpusharePage.go({{ card: '{node}/0' }})")
            title, close = [await tab.evaluate(f"{box}('#detail {each}').top") for each in ("h2", ".close")]
            assert abs(title - close) < 10, "in the first line of the title"


async def test_a_card_is_read_out_once(cluster: WebCluster, tab: Tab) -> None:
    """What it uses changes every few seconds."""
    live = "document.getElementById('detail').ariaLive"
    async with served(cluster) as page:
        await tab.open(f"{page.guard.url}#card=gpu-1/0")
        await tab.until(READY)
        cluster.put(
            SHARE_NODES,
            share_node_object("gpu-1", card(0, 16, share("team-a/train-1", 11), node="gpu-1")),
        )
        await tab.until("document.getElementById('detail').innerText.includes('11 of 16')")
        assert await tab.evaluate(live) == "off"
        await tab.evaluate("gpusharePage.go({ card: 'gpu-2/0' })")
        assert await tab.evaluate(live) == "polite"


async def test_five_thousand_nodes_fit_the_window_and_the_memory(cluster: WebCluster, tab: Tab) -> None:
    """``pytest -s`` shows the milliseconds of a change; beside clusters no limit of them would hold."""
    async with served(cluster) as page:
        await tab.resize(1440, 900)
        await tab.open(f"{page.guard.url}?demo")
        await tab.until(READY)
        assert (await figures(tab))[0].startswith("40,000 cards on 5,000 nodes")
        measured: dict[str, Any] = {}
        for color in COLORS:
            taken = await redraws(tab, color)
            # The least: what else the machine does makes it longer.
            measured[color] = {"change": min(taken.change), "map": min(taken.map)}
        heap, memory = await tab.heap(), await tab.memory()
        measured |= {"heap MiB": heap / 2**20, "process MiB": memory / 2**20}
        print(json.dumps(measured))
        assert memory < PAGE_BYTES, measured
        assert await tab.evaluate("document.getElementById('map').scrollHeight") <= 900
        assert tab.complaints() == []
