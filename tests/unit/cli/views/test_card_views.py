"""What people see of cards, pods, namespaces and use at 80 columns, in ASCII."""

from datetime import UTC, datetime

import pytest
from tests.samples.drawn_pages import drawn, page_of_width
from tests.samples.shared_cards import (
    HEALTHY,
    card,
    pending_pod_object,
    reading,
    share,
    share_node_object,
)

from gpushare_cli.decide.holders.namespaces_report import namespaces_report
from gpushare_cli.decide.holders.pod_holding import pod_holdings
from gpushare_cli.decide.holders.pods_report import PodSort, pods_report
from gpushare_cli.decide.inspection.inspection import (
    InspectionChoice,
    MissingNode,
    card_inspection,
)
from gpushare_cli.decide.inspection.node_reader import shared_nodes
from gpushare_cli.decide.inspection.unmeasured import unmeasured_sentences
from gpushare_cli.decide.objects.resource_quota import QuotaAmounts, QuotaMetadata, ResourceQuotaObject
from gpushare_cli.decide.use.top_report import TopOf, TopSort, top_report
from gpushare_cli.views.card_tables import MAX_ROWS, units_text
from gpushare_cli.views.holders import namespaces_view, pods_view
from gpushare_cli.views.inspection import MAX_DRAWN, inspection_view
from gpushare_cli.views.top import top_view

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
PAGE = page_of_width(80)
FAULT = {
    "uuid": "GPU-gpu-1-2",
    "reason": "Xid79",
    "message": "Xid 79, it has fallen off the bus: reboot the node",
    "since": "2026-01-01T00:00:00Z",
    "lastSeen": "2026-01-01T00:00:10Z",
}
OFFERS = {"memory": 80, "slice": 2, "card": 1}
MEMORY = share_node_object(
    "gpu-1",
    card(
        0,
        16,
        share("team-a/train-0", 4, used="6Gi"),
        share("team-a/train-1", 8, used="2Gi"),
        usedMemory="8Gi",
        node="gpu-1",
    ),
    card(
        1,
        16,
        share("team-b/notebook-of-somebody-with-a-long-name-0", 14, used="9Gi"),
        usedMemory="9Gi",
        cordoned=True,
        node="gpu-1",
    ),
    card(2, 16, share("team-b/gone", 3, orphaned=True), health="Unhealthy", node="gpu-1"),
    card(3, 16, node="gpu-1"),
    faults=(FAULT,),
)
MIXED = share_node_object(
    "gpu-2",
    card(0, 2, share("team-b/half", 1), lock="Slices", offers=OFFERS, memory="80Gi", node="gpu-2"),
    card(1, 80, share("team-a/mem", 10), lock="Memory", offers=OFFERS, memory="80Gi", node="gpu-2"),
    card(2, 1, share("team-a/whole", 1), lock="Exclusive", offers=OFFERS, memory="80Gi", node="gpu-2"),
    card(3, 80, offers=OFFERS, memory="80Gi", node="gpu-2"),
    mode="Mixed",
    unit="1Gi, 1/2 card, 1 card",
    scope="Cards",
    conditions=HEALTHY,
)
SLICES = share_node_object(
    "gpu-3",
    *(card(index, 4, share("team-b/s", 1), memory="24Gi", node="gpu-3") for index in range(2)),
    mode="Slices",
    unit="1/4 card",
    scope="Off",
    conditions=HEALTHY,
)
READ = reading(
    MEMORY,
    MIXED,
    SLICES,
    pods=(
        pending_pod_object("team-a/new", 5, node="gpu-1", card="GPU-gpu-1-3"),
        pending_pod_object("team-b/big", 20, message="0/4 nodes are available"),
    ),
)
NODES = shared_nodes(READ)
PODS = pod_holdings(NODES, READ, {})


def inspected(*names: str, **choice: object) -> str:
    report = card_inspection(NODES, InspectionChoice(names=names, **choice))  # type: ignore[arg-type]
    return drawn(inspection_view(report, PAGE), PAGE)


def test_a_node_with_problems_says_them_first() -> None:
    assert (
        inspected("gpu-1")
        == """\
1 node, 4 cards: 34Gi of 64Gi held, 15Gi free for new pods.

gpu-1
mode Memory, unit 1Gi, dialect gpushare.io, policy default
34 of 64 units held, 15 free, 11 at most for one pod
! card 0: container main of pod team-a/train-0 uses more memory than it asked
  for; other pods on the card may get none.
  Ask for more in the pod, or limit what its program uses.
    kubectl gpushare top pods -n team-a
! card 1 is cordoned: its pods stay, no new pod gets it.
  When it may have pods again:
    kubectl gpushare uncordon gpu-1 1
! card 2 is sick since 2026-01-01T00:00:00Z: Xid 79, it has fallen off the
  bus: reboot the node
  Once it is repaired, it returns by itself after a quiet time, or at once by:
    kubectl annotate gpusharenode gpu-1 --overwrite gpushare.io/clear-fault=GPU-gpu-1-2@2026-01-01T00:00:10Z
! card 2: pod team-b/gone is gone from the API, and its kubelet still keeps 3
  units.
  They are free again once its containers have ended on the node. If that takes
  more than a minute, look at the node.
    kubectl gpushare audit --node gpu-1

CARD  HELD        UNITS      USED  STATE     HELD BY: POD, UNITS, USE
   0  ########..  12/16  8Gi/16Gi            team-a/train-0: 4, uses 6Gi of 4Gi,
                                             OVER
                                             team-a/train-1: 8, uses 2Gi of 8Gi
   1  #########.  14/16  9Gi/16Gi  cordoned  team-b/notebook-of-somebody-with-a-
                                             long-name-0: 14, uses 9Gi of 14Gi
   2  ##........   3/16    0/16Gi  sick      team-b/gone: 3, gone and not
                                             released
   3  ###.......   5/16    0/16Gi            team-a/new: 5, not started"""
    )


def test_containers_that_use_too_much_are_one_problem_of_the_node() -> None:
    node = share_node_object(
        "gpu-1",
        card(0, 16, share("ml/a", 4, used="6Gi"), usedMemory="6Gi", node="gpu-1"),
        card(1, 16, share("ml/b", 4, used="6Gi"), share("ml/c", 4, used="5Gi"), node="gpu-1"),
    )
    report = card_inspection(shared_nodes(reading(node)), InspectionChoice())
    problems = [line for line in drawn(inspection_view(report, PAGE), PAGE).splitlines() if line[:1] == "!"]
    assert problems == ["! 3 containers on cards 0, 1 use more memory than they asked for; others there"]
    assert len(report.nodes[0].problems) == 3


def test_a_node_in_mode_mixed() -> None:
    assert (
        inspected("gpu-2")
        == """\
1 node, 4 cards: 130Gi of 320Gi held, 190Gi free for new pods.

gpu-2
mode Mixed, unit 1Gi, 1/2 card, 1 card, dialect gpushare.io, policy default
gpushare.io/memory (1Gi): 10 of 160 units held, 150 free, 80 at most for one pod
gpushare.io/slice (1/2 card): 1 of 4 units held, 3 free, 2 at most for one pod
gpushare.io/card (1 card): 1 of 2 units held, 1 free, 1 at most for one pod
CARD  HELD        UNITS    USED  STATE        HELD BY: POD, UNITS, USE
   0  #####.....    1/2  0/80Gi  Slices       team-b/half: 1
   1  #.........  10/80  0/80Gi  Memory       team-a/mem: 10
   2  ##########    1/1  0/80Gi  Exclusive    team-a/whole: 1
   3  ..........   0/80  0/80Gi  open to all  free: 80 memory, 2 slice, 1 card

? Node gpu-2: the use of containers is not measured:
spec.plugin.measurement.scope of GPUSharePolicy default is Cards. Set it to
Containers."""
    )


def test_a_node_in_mode_slices_of_which_nothing_is_measured() -> None:
    assert (
        inspected("gpu-3", card="0")
        == """\
1 node, 1 card: 6Gi of 24Gi held, 18Gi free for new pods.

gpu-3
mode Slices, unit 1/4 card, dialect gpushare.io, policy default
2 of 8 units held, 6 free, 2 at most for one pod
CARD  HELD        UNITS    USED  HELD BY: POD, UNITS, USE
   0  ##........    1/4  ?/24Gi  team-b/s: 1

? Node gpu-3: nothing is measured: spec.plugin.measurement.scope of
GPUSharePolicy default is Off. Set it to Cards or Containers."""
    )


def test_nodes_that_are_not_there_and_what_could_not_be_read() -> None:
    report = card_inspection(
        [],
        InspectionChoice(names=["gpu-9"]),
        missing=[MissingNode(name="gpu-9", reason="there is no node of this name (kubectl get nodes)")],
        unread=["It is not known which nodes are closed by kubectl cordon: 403 Forbidden: no."],
    )
    assert (
        drawn(inspection_view(report, PAGE), PAGE)
        == """\

It is not known which nodes are closed by kubectl cordon: 403 Forbidden: no.
gpu-9: there is no node of this name (kubectl get nodes)"""
    )


def test_no_problem() -> None:
    report = card_inspection(NODES[2:], InspectionChoice(only_problems=True))
    assert (
        drawn(inspection_view(report, PAGE), PAGE)
        == """\
No problem on 1 node."""
    )


def test_no_node_shares_cards() -> None:
    report = card_inspection([], InspectionChoice())
    assert (
        drawn(inspection_view(report, PAGE), PAGE)
        == """\
No node shares its cards.
Which policies there are, and what they say:
  kubectl gpushare status"""
    )


def test_pods_of_all_namespaces() -> None:
    report = pods_report(PODS, namespace="", sort=PodSort.NAME, now=NOW)
    assert (
        drawn(pods_view(report, PAGE), PAGE)
        == """\
NAMESPACE  POD             STATE     NODE   CARDS  UNITS        USED/ASKED   AGE
team-a     mem             Running   gpu-2  1      10 memory        ?/10Gi     ?
team-a     new             Starting  gpu-1  3      5 memory          ?/5Gi  4m5s
team-a     train-0         Running   gpu-1  0      4 memory   6Gi/4Gi OVER     ?
team-a     train-1         Running   gpu-1  0      8 memory        2Gi/8Gi     ?
team-a     whole           Running   gpu-2  2      1 card           ?/80Gi     ?
team-b     big             Waiting   -      -      20 memory             -  4m5s
team-b     gone            Orphaned  gpu-1  2      3 memory          0/3Gi     ?
team-b     half            Running   gpu-2  0      1 slice          ?/40Gi     ?
team-b     notebook-of-so  Running   gpu-1  1      14 memory      9Gi/14Gi     ?
           mebody-with-a-
           long-name-0
team-b     s               Running   gpu-3  0,1    2 slice          ?/12Gi     ?

1 pod waits. Why:
  kubectl gpushare why big -n team-b"""
    )


def test_pods_of_one_namespace() -> None:
    report = pods_report(
        PODS, namespace="team-b", sort=PodSort.HELD, now=NOW, unmeasured=unmeasured_sentences(NODES)
    )
    assert (
        drawn(pods_view(report, PAGE), PAGE)
        == """\
POD                          STATE     NODE   CARDS  UNITS      USED/ASKED   AGE
half                         Running   gpu-2  0      1 slice        ?/40Gi     ?
notebook-of-somebody-with-a  Running   gpu-1  1      14 memory    9Gi/14Gi     ?
-long-name-0
s                            Running   gpu-3  0,1    2 slice        ?/12Gi     ?
gone                         Orphaned  gpu-1  2      3 memory        0/3Gi     ?
big                          Waiting   -      -      20 memory           -  4m5s

1 pod waits. Why:
  kubectl gpushare why big -n team-b

? Node gpu-2: the use of containers is not measured:
spec.plugin.measurement.scope of GPUSharePolicy default is Cards. Set it to
Containers.
? Node gpu-3: nothing is measured: spec.plugin.measurement.scope of
GPUSharePolicy default is Off. Set it to Cards or Containers."""
    )


def test_no_pod_of_a_namespace() -> None:
    report = pods_report(PODS, namespace="team-c", sort=PodSort.NAME, now=NOW)
    assert (
        drawn(pods_view(report, PAGE), PAGE)
        == """\
No pod in namespace team-c holds units of a card or asks for them.
  kubectl gpushare pods -A"""
    )


def test_namespaces_beside_their_quota() -> None:
    memory, card = "requests.gpushare.io/memory", "requests.gpushare.io/card"
    quota = ResourceQuotaObject(
        metadata=QuotaMetadata("gpu", "team-a"),
        status=QuotaAmounts(hard={memory: "32", card: 1}, used={memory: "27", card: 1}),
    )
    report = namespaces_report(PODS, NODES, [quota])
    assert (
        drawn(namespaces_view(report, PAGE), PAGE)
        == """\
NAMESPACE  PODS  CARDS  UNITS HELD    USED/ASKED  WAITING       QUOTA: USED/HARD
team-a        5      4  27 memory, 1     ?/107Gi  -             27/32 memory,
                        card                                    1/1 card FULL
team-b        4      5  17 memory, 3      ?/69Gi  1 pod: 20     none
                        slice                     memory

To hold a namespace to 32 units:
  kubectl create quota gpu -n team-b --hard=requests.gpushare.io/memory=32
  kubectl create quota gpu -n team-b --hard=requests.gpushare.io/slice=32
  kubectl create quota gpu -n team-b --hard=requests.gpushare.io/card=32"""
    )


def test_top_cards() -> None:
    report = top_report(NODES, of=TopOf.CARDS, sort=TopSort.USED)
    assert (
        drawn(top_view(report, PAGE), PAGE)
        == """\
1 container uses more than it asked for.
NODE   CARD  PODS  USE         MEMORY  USED  ASKED  USED OF ASKED  NOTE
gpu-1     0     2  #####.....    16Gi   8Gi   12Gi            67%  OVER: 1
                                                                   container
gpu-1     1     1  ######....    16Gi   9Gi   14Gi            64%
gpu-1     2     1  ..........    16Gi     0    3Gi             0%
gpu-1     3     1  ..........    16Gi     0    5Gi             0%
gpu-2     0     1  ..........    80Gi     0   40Gi             0%
gpu-2     1     1  ..........    80Gi     0   10Gi             0%
gpu-2     2     1  ..........    80Gi     0   80Gi             0%
gpu-2     3     0  ..........    80Gi     0      0              -
gpu-3     0     1  ?             24Gi     ?    6Gi              ?
gpu-3     1     1  ?             24Gi     ?    6Gi              ?"""
    )


def test_top_nodes() -> None:
    report = top_report(NODES, of=TopOf.NODES, sort=TopSort.USED)
    assert (
        drawn(top_view(report, PAGE), PAGE)
        == """\
1 container uses more than it asked for.
NODE   CARDS  USE         MEMORY  USED  ASKED  USED OF ASKED  NOTE
gpu-1      4  ###.......    64Gi  17Gi   34Gi            50%  OVER: 1 container
gpu-2      4  ..........   320Gi     0  130Gi             0%
gpu-3      2  ?             48Gi     ?   12Gi              ?"""
    )


def test_top_pods_and_what_is_not_measured() -> None:
    report = top_report(NODES, of=TopOf.PODS, sort=TopSort.USED, unmeasured=unmeasured_sentences(NODES))
    assert (
        drawn(top_view(report, PAGE), PAGE)
        == """\
1 container uses more than it asked for.
POD                     CONTAINER  NODE   CARD  USED  ASKED  USED OF ASKED  NOTE
team-a/train-0          main       gpu-1     0   6Gi    4Gi           150%  OVER
team-b/notebook-of-som  main       gpu-1     1   9Gi   14Gi            64%
ebody-with-a-long-name
-0
team-a/train-1          main       gpu-1     0   2Gi    8Gi            25%
team-a/mem              main       gpu-2     1     ?   10Gi              ?
team-a/whole            main       gpu-2     2     ?   80Gi              ?
team-b/gone             main       gpu-1     2     0    3Gi             0%
team-b/half             main       gpu-2     0     ?   40Gi              ?
team-b/s                main       gpu-3     0     ?    6Gi              ?
team-b/s                main       gpu-3     1     ?    6Gi              ?

? Node gpu-2: the use of containers is not measured:
spec.plugin.measurement.scope of GPUSharePolicy default is Cards. Set it to
Containers.
? Node gpu-3: nothing is measured: spec.plugin.measurement.scope of
GPUSharePolicy default is Off. Set it to Cards or Containers."""
    )


def test_of_many_nodes_there_is_a_line_each() -> None:
    nodes = shared_nodes(
        reading(*(share_node_object(f"gpu-{number:02}", card(0, 16)) for number in range(MAX_DRAWN + 1)))
    )
    report = card_inspection(nodes, InspectionChoice())
    text = drawn(inspection_view(report, PAGE), PAGE)
    assert (
        "gpu-16  Memory  1Gi       1  ..........       0/16Gi  16               0  ok\n"
        "\n"
        "Who holds what of a card:\n"
        "  kubectl gpushare inspect gpu-00\n"
        "  kubectl gpushare inspect -o wide"
    ) in text
    assert "HELD BY" not in text
    wide = page_of_width(200, is_wide=True)
    assert drawn(inspection_view(report, wide), wide).count("HELD BY") == MAX_DRAWN + 1


def test_a_terminal_gets_so_many_pods_and_a_pipe_all() -> None:
    pods = tuple(pending_pod_object(f"a/p{number:03}", 1) for number in range(MAX_ROWS + 1))
    read = reading(share_node_object("n1", card(0, 16)), pods=pods)
    report = pods_report(
        pod_holdings(shared_nodes(read), read, {}), namespace="a", sort=PodSort.NAME, now=NOW
    )
    assert "1 more: -o wide shows all, -n those of a namespace." in drawn(pods_view(report, PAGE), PAGE)
    pipe = page_of_width(10_000)
    assert "p500" in drawn(pods_view(report, pipe), pipe)


def test_no_line_is_wider_than_the_page() -> None:
    for width in (80, 120, 160):
        page = page_of_width(width)
        parts = inspection_view(card_inspection(NODES, InspectionChoice()), page)
        lines = drawn(parts, page).splitlines()
        too_wide = [line for line in lines if len(line) > width and "kubectl" not in line]
        assert too_wide == []


def test_names_that_control_a_terminal_are_shown_as_text() -> None:
    evil = share_node_object("n1", card(0, 16, share("a/\x1b[2Jx", 4), model="\x1b]0;x\x07"))
    nodes = shared_nodes(reading(evil))
    wide = page_of_width(200, is_wide=True)
    texts = (
        drawn(inspection_view(card_inspection(nodes, InspectionChoice()), wide), wide),
        drawn(top_view(top_report(nodes, of=TopOf.PODS, sort=TopSort.USED), wide), wide),
    )
    for text in texts:
        assert "\x1b" not in text
        assert "\\u001b[2Jx" in text


@pytest.mark.parametrize(
    ("units", "text"),
    [
        ({}, ""),
        ({"gpushare.io/memory": 4}, "4 memory"),
        ({"aliyun.com/gpu-mem": 4, "gpushare.io/memory": 2}, "6 memory"),
        ({"example.com/other": 1}, "1 example.com/other"),
    ],
)
def test_units_are_named_by_class(units: dict[str, int], text: str) -> None:
    assert units_text(units) == text


def test_nothing_is_said_to_be_there_that_could_not_be_read() -> None:
    unread = ["Pods that wait are not shown: 403."]
    problems = card_inspection(NODES[2:], InspectionChoice(only_problems=True), unread=unread)
    pods = pods_report(PODS, namespace="team-c", sort=PodSort.NAME, now=NOW, unread=unread)
    namespaces = namespaces_report([], NODES, [], unread=unread)
    assert "No problem on 1 node in what could be read." in drawn(inspection_view(problems, PAGE), PAGE)
    assert "or asks for them, as far as" in drawn(pods_view(pods, PAGE), PAGE)
    assert "quota of them, as" in drawn(namespaces_view(namespaces, PAGE), PAGE)


def test_labels_that_no_node_has_are_not_said_to_be_all_nodes() -> None:
    report = card_inspection(NODES, InspectionChoice(labelled=frozenset()))
    text = drawn(inspection_view(report, PAGE), PAGE)
    assert text.startswith("No node that matches shares its cards. Looked at 3 nodes.")
