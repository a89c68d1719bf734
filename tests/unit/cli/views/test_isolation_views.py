"""What people see of isolation and of pods that have more than they asked for."""

import re
from datetime import UTC, datetime

from tests.samples.drawn_pages import drawn, page_of_width
from tests.samples.shared_cards import (
    EVICTING,
    HELD,
    HOOK,
    MOMENT,
    UNABLE,
    card,
    condition,
    reading,
    share,
    share_node_object,
)

from gpushare_cli.decide.holders.pod_holding import pod_holdings
from gpushare_cli.decide.holders.pods_report import PodSort, pods_report
from gpushare_cli.decide.inspection.inspection import InspectionChoice, card_inspection
from gpushare_cli.decide.inspection.node_reader import shared_nodes
from gpushare_cli.decide.status import PolicyState, StatusReport
from gpushare_cli.decide.use.top_report import TopOf, TopSort, top_report
from gpushare_cli.output.page import OutputPage
from gpushare_cli.views.card_tables import over_text
from gpushare_cli.views.holders import pods_view
from gpushare_cli.views.inspection import inspection_view
from gpushare_cli.views.status import status_view
from gpushare_cli.views.top import top_view
from gpushare_core.text.json_object import Json

NOW = datetime(2026, 1, 2, 3, 0, 40, tzinfo=UTC)
LOOKED = "2026-01-02T03:00:40Z"
PAGE, WIDE = page_of_width(100), page_of_width(160, is_wide=True)
TWO = (
    share("team-b/two", 4, used="1Gi", isolation="Hook", container="one"),
    share("team-b/two", 4, used="1Gi", container="two"),
)
EXCEEDING = share_node_object(
    "gpu-1",
    card(
        0,
        16,
        share("team-a/over", 4, used="5Gi", isolation="Hook", exceededSince=MOMENT),
        share("team-a/before", 4, used="2Gi"),
        *TWO,
        usedMemory="9Gi",
        node="gpu-1",
    ),
    isolation=EVICTING,
    given="Hook",
    conditions=HELD,
)
OLDER = share_node_object("gpu-9", card(0, 16, share("team-c/x", 4, used="1Gi"), node="gpu-9"))


def inspected(*nodes: Json, page: OutputPage = PAGE) -> list[str]:
    report = card_inspection(shared_nodes(reading(*nodes)), InspectionChoice(), time=LOOKED)
    return drawn(inspection_view(report, page), page).splitlines()


def test_inspect_says_what_holds_each_pod_and_when_one_is_evicted() -> None:
    lines = inspected(EXCEEDING)
    assert "isolation Hook, in force, pods that have more for 60 s are evicted" in lines
    held = " ".join(" ".join(lines[-5:]).split())
    assert "team-a/before: 4, uses 2Gi of 4Gi, no isolation team-a/over" in held
    assert "team-a/over: 4, uses 5Gi of 4Gi, Hook, OVER for 40s, evicted in 20s" in held
    assert held.endswith("team-b/two: 8, uses 2Gi of 8Gi, Hook, not all")


def test_on_a_wide_page_each_container_has_its_limit() -> None:
    text = "\n".join(inspected(EXCEEDING, page=WIDE))
    assert "    one: 4, limit 4Gi by Hook" in text
    assert "    two: 4, no limit" in text


def test_a_node_that_cannot_have_it_says_so_and_what_to_do() -> None:
    node = share_node_object("gpu-1", card(0, 16), isolation=HOOK, given="Unavailable", conditions=UNABLE)
    lines = inspected(node)
    assert "isolation Hook, not to be had here" in lines
    assert (
        "! IsolationReady is False (HookMissing): The hook's library is not in the plugin's image."
        in "".join(lines)
    )


def test_what_is_not_known_is_not_said_to_be_in_force() -> None:
    unknown = (*HELD[:-1], condition("IsolationInForce", "Unknown", "NotRead", "The driver was not asked."))
    node = share_node_object(
        "gpu-1", card(0, 16, share("a/x", 4, isolation="Driver")), isolation=HOOK, conditions=unknown
    )
    assert "isolation Hook, of which its plugin says nothing" in inspected(node)
    node["status"]["isolation"] = "Hook"
    assert "isolation Hook, whether it is in force is not known" in inspected(node)


def test_top_says_it_beside_each_container() -> None:
    report = top_report(shared_nodes(reading(EXCEEDING)), of=TopOf.PODS, sort=TopSort.NAME, looked_at=LOOKED)
    first, header, *rows = drawn(top_view(report, WIDE), WIDE).splitlines()
    assert first == "1 container uses more than it asked for."
    assert header.split()[-3:] == ["LIMIT", "NOTE", "UUID"]
    notes = {row.split()[1] + " " + row.split()[0]: row for row in rows}
    assert "4Gi  Hook, OVER for 40s, evicted in 20s" in notes["main team-a/over"]
    assert "no isolation" in notes["main team-a/before"]
    assert "4Gi  Hook" in notes["one team-b/two"]


def test_pods_say_who_is_evicted_and_when() -> None:
    read = reading(EXCEEDING)
    report = pods_report(pod_holdings(shared_nodes(read), read, {}), namespace="", sort=PodSort.NAME, now=NOW)
    lines = drawn(pods_view(report, PAGE), PAGE).splitlines()
    shown = [re.split(" {2,}", line)[-2] for line in lines[:4]]
    assert shown == ["ISOLATION", "none", "Hook", "Hook, not all"]
    assert lines[-1] == "team-a/over has more memory than it asked for: OVER for 40s, evicted in 20s."


def test_a_cluster_of_older_plugins_has_nothing_odd() -> None:
    nodes = shared_nodes(reading(OLDER))
    top = drawn(top_view(top_report(nodes, of=TopOf.PODS, sort=TopSort.USED), WIDE), WIDE)
    pods = pods_report(pod_holdings(nodes, reading(OLDER), {}), namespace="", sort=PodSort.NAME, now=NOW)
    text = "\n".join((*inspected(OLDER, page=WIDE), top, drawn(pods_view(pods, WIDE), WIDE)))
    for word in ("isolation", "ISOLATION", "LIMIT", "limit"):
        assert word not in text


def test_an_eviction_that_is_due() -> None:
    due = over_text(MOMENT, "2026-01-02T03:00:30Z", LOOKED)
    assert due == "OVER for 40s, eviction is due"
    assert over_text("", "", LOOKED) == over_text(MOMENT, "", "") == "OVER"


def test_the_policies_fit_a_narrow_terminal() -> None:
    asked = PolicyState(
        name="default",
        ready="True",
        backend="KubeScheduler",
        isolation="Hook, evicts",
        allocated_units=34,
        total_units=128,
        unit="256Mi",
        units_summary="34/128",
        allocated_memory_bytes=17 * 2**29,
        total_memory_bytes=2**35,
    )
    page = page_of_width(80)
    lines = drawn(status_view(StatusReport(is_well=True, policies=(asked,)), page), page).splitlines()
    assert max(len(line.rstrip()) for line in lines) <= 80
