"""Cases made by hand about GPUShareNodes: which cards are free, which a pod gets, when a node is closed."""

from collections.abc import Iterator

from tests.engine.shapes import (
    CARD,
    MEMORY,
    SLICE,
    card,
    cards,
    cluster,
    container,
    given,
    mixed,
    node,
    one,
    pod,
    spec,
)

from gpushare_core.text.json_object import Json


def modes() -> Iterator[Json]:
    for strategy in ("Binpack", "Spread"):
        asked = {"strategy": strategy}
        sizes = [
            node("n1", "Memory", cards("n1", 16, 8, 24, 8), spec=asked),
            node("n2", "Memory", cards("n2", 16), spec=asked),
        ]
        yield cluster(
            f"{strategy}: cards of several sizes", sizes, *[one(MEMORY, n) for n in (1, 8, 9, 16, 24, 25)]
        )
        halves = [node("n1", "Slices", cards("n1", 2, 2, 2), spec=asked)]
        taken = pod("u", "n1", {"n1-1": 1}, unit="1/2 card")
        yield cluster(
            f"{strategy}: slices of distinct cards",
            halves,
            *[one(SLICE, n) for n in (1, 2, 3, 4)],
            pods=(taken,),
        )
        groups = [
            card("n1-0", 1, numaNode=0, linkGroup=0),
            card("n1-1", 1, numaNode=0, linkGroup=1),
            card("n1-2", 1, numaNode=0, linkGroup=1),
            card("n1-3", 1, numaNode=1),
            card("n1-4", 1, numaNode=1, linkGroup=0),
            card("n1-5", 1),
        ]
        whole = [
            node("n1", "Exclusive", groups, spec=asked),
            node("n2", "Exclusive", cards("n2", 1, 1), spec=asked),
        ]
        yield cluster(f"{strategy}: whole cards that are near", whole, *[one(CARD, n) for n in range(1, 8)])
        open_ = [
            node("n1", "Mixed", mixed("n1", "", "Memory", "Slices", "Exclusive", ""), spec=asked),
            node("n2", "Mixed", mixed("n2", ""), spec=asked),
        ]
        yield cluster(
            f"{strategy}: mode Mixed, locked and free cards",
            open_,
            *[one(name, n) for name in (MEMORY, SLICE, CARD) for n in (1, 2, 3)],
        )
        three = spec(container("a", {CARD: "1"}), container("b", {MEMORY: "2"}), container("c", {SLICE: "2"}))
        yield cluster(
            f"{strategy}: several classes together", [*open_, sizes[0]], three, spec(*three["containers"][:2])
        )
    beside = [card(f"n1-{place}", 1, numaNode=0, linkGroup=0) for place in range(3)]
    yield cluster(
        "whole cards: all of them are near", [node("n1", "Exclusive", beside)], one(CARD, 1), one(CARD, 2)
    )
    lending = spec(
        container("main", {SLICE: "1"}),
        init=(container("i", {SLICE: "2"}), container("s", {SLICE: "1"}, restartPolicy="Always")),
    )
    yield cluster(
        "init and sidecar containers share cards", [node("n1", "Slices", cards("n1", 2, 2, 2))], lending
    )
    speeds = [
        node(f"n{n}", "Memory", cards(f"n{n}", 16, computeScore=score))
        for n, score in ((1, 90), (2, 80), (3, 80))
    ]
    yield cluster("slow cards first, then the first by name", speeds, one(MEMORY, 4))
    fast = [
        node(f"n{n}", "Exclusive", cards(f"n{n}", 1, computeScore=score))
        for n, score in ((1, 90), (2, 80), (3, 80))
    ]
    yield cluster("whole cards: fast cards first", fast, one(CARD, 1))
    for dialect, names in {
        "aliyun.com": ["aliyun.com/gpu-mem"],
        "volcano.sh": ["volcano.sh/gpu-memory", "volcano.sh/gpu-number"],
        "enflame.com": ["enflame.com/gcu-memory"],
        "tuya.com": ["tuya.com/vcuda-memory", "tuya.com/sgpu", "nvidia.com/gpu"],
    }.items():
        asked = {"dialect": dialect}
        nodes = [
            node("n1", "Mixed", mixed("n1", "", ""), spec=asked, dialect=dialect),
            node("n2", "Memory", cards("n2", 16)),
        ]
        yield cluster(f"{dialect}: what its nodes serve", nodes, *[one(name, 2) for name in (*names, MEMORY)])


def use() -> Iterator[Json]:
    def memory(name: str, *fields: Json, pods: tuple[Json, ...] = (), gone: tuple[str, ...] = ()) -> Json:
        written = [card(f"n1-{place}", 16) | field for place, field in enumerate(fields)]
        return cluster(
            name, [node("n1", "Memory", written)], one(MEMORY, 6), one(MEMORY, 16), pods=pods, gone=gone
        )

    four, other = pod("u", "n1", {"n1-0": 4}), pod("v", "n1", {"n1-0": 8})
    yield memory("annotations alone", {}, {}, pods=(four, other))
    yield memory("the kubelet gave more than the annotation says", given("u", 12), {}, pods=(four,))
    yield memory("the kubelet gave less than the annotation says", given("u", 1), {}, pods=(four,))
    yield memory("the kubelet gave another card", {}, given("u", 4), pods=(four,))
    yield memory("a holder that the API does not know", given("x", 12), {}, pods=(four,))
    yield memory("units whose holder is not named", given("u", 4, allocated=12), {}, pods=(four,))
    yield memory("init containers lend", given("u", 4, 4, allocated=4), {}, pods=(four,))
    yield memory(
        "init containers of one that is not booked lend", given("x", 8, 8, allocated=8), {}, pods=(four,)
    )
    yield memory("an over-full card", given("x", 20), {}, pods=(four,))
    yield memory("over-full by annotations", {}, pods=(pod("u", "n1", {"n1-0": 30}),))
    yield memory(
        "pods that would be gone", given("u", 4), given("x", 12), pods=(four, other), gone=("u", "x")
    )
    yield memory(
        "one that would be gone lends", given("u", 8, 4, allocated=12), {}, pods=(four, other), gone=("u",)
    )
    yield memory(
        "one that would be gone, and is not booked, lends", given("x", 6, 6, allocated=10), {}, gone=("x",)
    )
    yield memory(
        "one that would be gone has more than the total", given("x", 6, allocated=4), {}, gone=("x",)
    )
    two = {"allocatedUnits": 6, "pods": [*given("u", 4, 4)["pods"], *given("x", 4, 4)["pods"]]}
    yield memory("one of two that lend is booked", two, {}, pods=(four,))
    yield memory("one of two that lend is booked, and would be gone", two, {}, pods=(four,), gone=("u",))
    yield memory("a card of another unit", {}, {}, pods=(pod("u", "n1", {"n1-0": 4}, unit="3Gi"),))
    yield memory("a smaller unit is rounded up", {}, {}, pods=(pod("u", "n1", {"n1-0": 5}, unit="512Mi"),))
    small = pod("u", "n1", {"n1-0": 5}, unit="512Mi")
    yield memory("a smaller unit, and the kubelet has the pod", given("u", 3), {}, pods=(small,))
    yield memory(
        "another class takes the whole card", {}, {}, pods=(pod("u", "n1", {"n1-0": 1}, unit="1 card"),)
    )
    yield memory("a unit that nobody can read", {}, {}, pods=(pod("u", "n1", {"n1-0": 4}, unit="much"),))
    yield memory("a card that the node does not have", {}, pods=(pod("u", "n1", {"gone-0": 4}),))
    yield memory("a sick card does not count", {"health": "Unhealthy"}, {})
    yield memory("cordoned cards do not count", {"cordoned": True}, {"cordoned": True}, given("x", 11))
    copy = {**four, "uid": "w"}
    yield memory("a copied annotation is nobody's", {}, pods=(copy, other))
    nodes = [node("n1", "Memory", cards("n1", 16)), node("n2", "Memory", cards("n2", 16))]
    held = cluster("a pod that has units already fits nowhere else", nodes, one(MEMORY, 4), pods=(four,))
    held["given"]["asks"][0]["uid"] = "u"
    yield held
    yield memory("two cards of one UUID", {}, {"uuid": "n1-0"}, pods=(four,))
    for lock in ("", "Memory", "Slices", "Exclusive"):
        nodes = [node("n1", "Mixed", mixed("n1", lock, ""))]
        for unit in ("1Gi", "1/2 card", "1 card", "much"):
            booked = pod("u", "n1", {"n1-0": 1}, unit=unit)
            asks = one(MEMORY, 2), one(SLICE, 1), one(CARD, 1)
            yield cluster(
                f"mode Mixed: lock {lock or 'none'}, booked {unit}",
                nodes,
                *asks,
                pods=(booked,),
                gone=("other",),
            )
    more = [node("n1", "Mixed", [mixed("n1", "Slices")[0] | given("x", 2, allocated=1)])]
    yield cluster(
        "mode Mixed: one that would be gone has more than the total", more, one(MEMORY, 1), gone=("x",)
    )
    nothing = {"allocatedUnits": 0, "pods": given("x", 0)["pods"]}
    empty = [node("n1", "Mixed", [mixed("n1", "Slices")[0] | nothing])]
    yield cluster("mode Mixed: a lock without units", empty, one(SLICE, 1), one(MEMORY, 1), gone=("x",))
    left = [node("n1", "Mixed", [mixed("n1", "Slices")[0] | given("other", 1)])]
    left[0]["status"]["cards"][0]["pods"] += nothing["pods"]
    yield cluster(
        "mode Mixed: a holder without units is left", left, one(SLICE, 1), one(MEMORY, 1), gone=("other",)
    )
    zero = pod("v", "n1", {"n1-0": 0}, unit="1/2 card")
    booked = pod("u", "n1", {"n1-0": 1})
    free = [node("n1", "Mixed", mixed("n1", ""))]
    yield cluster(
        "mode Mixed: no units of another class", free, one(MEMORY, 1), one(SLICE, 1), pods=(zero, booked)
    )
    legacy = {
        "uid": "u",
        "node": "n1",
        "annotations": {"ALIYUN_COM_GPU_MEM_IDX": "1", "ALIYUN_COM_GPU_MEM_POD": "4"},
    }
    legacy["spec"] = one("aliyun.com/gpu-mem", 4)
    for dialect in ("aliyun.com", "gpushare.io"):
        written = node("n1", "Memory", cards("n1", 16, 16), spec={"dialect": dialect}, dialect=dialect)
        yield cluster(
            f"a pod of a replaced system on a node in dialect {dialect}",
            [written],
            one(MEMORY, 16),
            pods=(legacy,),
        )
    exclusive = node(
        "n1", "Exclusive", cards("n1", 1, 1), spec={"dialect": "aliyun.com"}, dialect="aliyun.com"
    )
    yield cluster(
        "a pod of a replaced system takes a whole card",
        [exclusive],
        one(CARD, 1),
        one(CARD, 2),
        pods=(legacy,),
    )


def closed() -> Iterator[Json]:
    def registered(status: str, message: str) -> list[Json]:
        return [{"type": "Registered", "status": status, "message": message}]

    plain = cards("n1", 16)
    nodes = {
        "being deleted": node("n1", "Memory", plain)
        | {"metadata": {"name": "n1", "deletionTimestamp": "2026-11-26T10:00:00Z"}},
        "an unknown mode": node("n1", "Memory", plain, spec={"mode": "New"}),
        "no mode": node("n1", "Memory", plain, spec={"mode": ""}),
        "an unknown dialect": node("n1", "Memory", plain, spec={"dialect": "new.io"}),
        "no conditions": node("n1", "Memory", plain, conditions=None),
        "not registered": node("n1", "Memory", plain, conditions=registered("False", "it\nwaits\x1b[31m")),
        "a long message": node("n1", "Memory", plain, conditions=registered("Unknown", "é" * 600)),
        "another unit to come": node("n1", "Memory", plain, spec={"memoryUnit": "2Gi"}),
        "another unit that is too fine": node(
            "n1",
            "Memory",
            plain,
            spec={"memoryUnit": "1Mi"},
            conditions=[*registered("True", ""), {"type": "UnitTooFine", "status": "True"}],
        ),
        "isolation that fails": node(
            "n1",
            "Memory",
            plain,
            spec={"isolation": {"memory": "Hook"}},
            conditions=[
                *registered("True", ""),
                {"type": "IsolationReady", "status": "False", "message": "no"},
            ],
        ),
        "isolation of another kind": node(
            "n1",
            "Memory",
            plain,
            spec={"isolation": {"memory": "Driver"}},
            isolation="Hook",
            conditions=[
                *registered("True", ""),
                {"type": "IsolationReady", "status": "True", "message": "yes"},
            ],
        ),
        "a message that is cut in an escape": node(
            "n1", "Memory", plain, conditions=registered("False", "y" * 1017 + "\x00z" * 9)
        ),
        "a message that is cut in a character": node(
            "n1", "Memory", plain, conditions=registered("False", "y" * 1020 + "é" * 9)
        ),
        "another dialect in force": node(
            "n1", "Memory", plain, spec={"dialect": "aliyun.com"}, dialect="volcano.sh"
        ),
        "cards of unknown health": node("n1", "Memory", [card("n1-0", 16) | {"health": ""}, card("n1-1", 8)]),
        "another mode to come": node("n1", "Memory", plain, spec={"mode": "Mixed"}),
        "another unit that is kept back": node(
            "n1", "Memory", plain, spec={"memoryUnit": "2Gi", "unitChange": "Keep"}
        ),
        "the same unit written differently": node("n1", "Memory", plain, spec={"memoryUnit": "1024Mi"}),
        "no slices to come": node("n1", "Memory", plain, spec={"mode": "Slices", "slicesPerCard": None}),
        "isolation to come": node("n1", "Memory", plain, spec={"isolation": {"memory": "Hook"}}),
        "isolation there": node(
            "n1", "Memory", plain, spec={"isolation": {"memory": "Hook"}}, isolation="Hook"
        ),
        "no healthy card": node("n1", "Memory", cards("n1", 16, health="Unhealthy")),
        "no open card": node("n1", "Memory", cards("n1", 16, cordoned=True)),
        "no cards": node("n1", "Memory", []),
        "no status": {"metadata": {"name": "n1"}, "spec": {"mode": "Memory", "memoryUnit": "1Gi"}},
        "a card without units": node("n1", "Memory", [{"uuid": "x"}]),
        "a number as text": node("n1", "Memory", cards("n1", 16, computeScore="80")),
        "null for a number": node("n1", "Memory", [*cards("n1", 16, index=None), card("n1-1", 16)]),
        "a part of a unit": node("n1", "Memory", [*plain, card("n1-1", 16, allocatedUnits=1.0)]),
        "pods that are no list": node("n1", "Memory", cards("n1", 16, pods={})),
        "a unit of no mode": node("n1", "Memory", plain, memoryUnit="1Gi, 1 card, 1 card"),
        "nothing but a name": {"metadata": {"name": "n1"}},
        "status null": {"metadata": {"name": "n1"}, "status": None},
        "spec null": {"metadata": {"name": "n1"}, "spec": None},
    }
    for name, written in nodes.items():
        yield cluster(f"GPUShareNode: {name}", [written], one(MEMORY, 2))
    card_twice = '{"cards":[{"uuid":"a","units":1,"units":2}]}'
    waiting = [
        node(
            f"n{number}",
            "Memory",
            cards(f"n{number}", 16),
            conditions=registered("False", f"waits {number % 4}"),
        )
        for number in range(1, 6)
    ]
    yield cluster("many closed nodes: in brief", waiting, one(MEMORY, 2))
    yield cluster("few closed nodes: in full", waiting[:3], one(MEMORY, 2))
    sizes = [node(f"n{number}", "Memory", cards(f"n{number}", number)) for number in (2, 8, 4)]
    several = spec(container("a", {MEMORY: "5"}), container("b", {MEMORY: "6"}))
    yield cluster("the nearest node's amounts", [*sizes, node("n9", "Slices", cards("n9", 2))], several)
    twice = f'{{"metadata":{{"name":"no"}},"metadata":{{"name":"n1"}},"Spec":1,"status":{card_twice}}}'
    yield cluster("GPUShareNode: equal keys, the last counts", [twice], one(MEMORY, 2))
    yield cluster("GPUShareNode: no name", [{"metadata": {}}, node("n1", "Memory", plain)], one(MEMORY, 2))
