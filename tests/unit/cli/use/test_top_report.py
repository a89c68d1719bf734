"""Use beside what was asked for; those that exceed it come first."""

from tests.samples.shared_cards import card, reading, share, share_node_object

from gpushare_cli.decide.inspection.node_reader import shared_nodes
from gpushare_cli.decide.use.top_report import TopOf, TopSort, top_report

GI = 2**30
NODES = shared_nodes(
    reading(
        share_node_object(
            "n1",
            card(
                0,
                16,
                share("a/calm", 8, used="1Gi"),
                share("b/greedy", 1, used="2Gi"),
                usedMemory="3Gi",
            ),
            card(1, 16, share("a/busy", 14, used="12Gi"), usedMemory="12Gi"),
            card(2, 16),
        ),
        share_node_object("n2", card(0, 16, share("a/dark", 4), node="n2"), scope="Off"),
    )
)


def containers(sort: TopSort, namespace: str = "") -> list[str]:
    return [row.pod for row in top_report(NODES, of=TopOf.PODS, sort=sort, namespace=namespace).containers]


def test_containers_that_exceed_what_they_asked_for_come_first() -> None:
    assert containers(TopSort.USED) == ["greedy", "busy", "calm", "dark"]
    assert containers(TopSort.ASKED) == ["greedy", "busy", "calm", "dark"]
    assert containers(TopSort.NAME) == ["greedy", "busy", "calm", "dark"]


def test_containers_of_a_namespace() -> None:
    assert containers(TopSort.SHARE, "a") == ["busy", "calm", "dark"]


def test_what_is_not_measured_is_unknown() -> None:
    report = top_report(NODES, of=TopOf.PODS, sort=TopSort.USED)
    dark = report.containers[-1]
    assert (dark.used_bytes, dark.asked_bytes, dark.share) == (None, 4 * GI, None)


def test_cards() -> None:
    report = top_report(NODES, of=TopOf.CARDS, sort=TopSort.USED)
    assert [(row.node, row.card, row.used_bytes, row.exceeding) for row in report.cards] == [
        ("n1", 0, 3 * GI, 1),
        ("n1", 1, 12 * GI, 0),
        ("n1", 2, 0, 0),
        ("n2", 0, None, 0),
    ]
    assert report.cards[0].share == 3 / 9
    assert report.cards[2].share is None


def test_nodes() -> None:
    report = top_report(NODES, of=TopOf.NODES, sort=TopSort.NAME)
    assert [(row.node, row.cards, row.used_bytes, row.asked_bytes) for row in report.nodes] == [
        ("n1", 3, 15 * GI, 23 * GI),
        ("n2", 1, None, 4 * GI),
    ]
    assert report.names == ["gpusharenode.gpushare.io/n1", "gpusharenode.gpushare.io/n2"]
