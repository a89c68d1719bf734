"""The cases that were made by hand: each is about one rule, and its name says which."""

from collections.abc import Iterator, Mapping
from typing import Any

from gpushare_core.allocation_annotation import Allocation, encode_allocation
from gpushare_core.dialects.dialect import Dialect
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.text.json_object import Json

MEMORY, SLICE, CARD = "gpushare.io/memory", "gpushare.io/slice", "gpushare.io/card"
MIXED_UNIT = "1Gi, 1/2 card, 1 card"
UNITS = {"Memory": "1Gi", "Slices": "1/2 card", "Exclusive": "1 card", "Mixed": MIXED_UNIT}
SIZES = {"Memory": 16, "Slices": 2, "Exclusive": 1, "Mixed": 16}
NOW = 1_789_000_000_123_456


def card(uuid: str, units: int, **fields: Any) -> Json:
    index = int(uuid.rpartition("-")[2])
    return {"uuid": uuid, "index": index, "units": units, "health": "Healthy", "computeScore": 80, **fields}


def cards(name: str, *units: int, **fields: Any) -> list[Json]:
    return [card(f"{name}-{place}", amount, **fields) for place, amount in enumerate(units)]


def node(name: str, mode: str, written: list[Json], *, spec: Json | None = None, **status: Any) -> Json:
    asked = {"mode": mode, "memoryUnit": "1Gi", "slicesPerCard": 2, "strategy": "Binpack"}
    conditions = [{"type": "Registered", "status": "True"}]
    found = {"memoryUnit": UNITS[mode], "conditions": conditions, "cards": written}
    return {"metadata": {"name": name}, "spec": asked | (spec or {}), "status": found | status}


def mixed(name: str, *locks: str, **fields: Any) -> list[Json]:
    """Returns cards of mode Mixed, each with its lock; those with one have something given out."""
    units = {"": 16, "Memory": 16, "Slices": 2, "Exclusive": 1}
    offers = {"memory": 16, "slice": 2, "card": 1}
    return [
        card(f"{name}-{place}", units[lock], lock=lock, offers=offers, **(given("other", 1) if lock else {}), **fields)
        for place, lock in enumerate(locks)
    ]


def given(uid: str, *units: int, allocated: int | None = None) -> Json:
    """Returns what the kubelet gave to the containers of one pod."""
    pods = [
        {"uid": uid, "namespace": "d", "name": uid, "container": f"c{place}", "units": amount}
        for place, amount in enumerate(units)
    ]
    return {"allocatedUnits": sum(units) if allocated is None else allocated, "pods": pods}


def container(name: str, limits: Json, **fields: Any) -> Json:
    return {"name": name, "resources": {"limits": limits}, **fields}


def spec(*containers: Json, init: tuple[Json, ...] = ()) -> Json:
    return {"containers": [*containers], **({"initContainers": [*init]} if init else {})}


def one(resource: str, amount: Any) -> Json:
    return spec(container("main", {resource: str(amount)}))


def pod(uid: str, where: str, shares: Mapping[str, int], *, unit: str = "1Gi", named: str = "", **fields: Any) -> Json:
    """Returns a bound pod with an annotation; ``named`` is the node in it where that is another one."""
    allocation = Allocation(
        node=named or where,
        uid=uid,
        at="2026-11-26T10:00:00Z",
        unit=unit,
        containers={"main": dict(shares)},
        cards=dict(shares),
        resource=ResourceClass.CARD if unit == "1 card" else ResourceClass.SLICE if "/" in unit else ResourceClass.MEMORY,
        **fields,
    )
    return {"uid": uid, "node": where, "annotations": {Dialect.allocation_annotation: encode_allocation(allocation)}}


def cluster(name: str, nodes: list[Any], *asks: Json, pods: tuple[Json, ...] = (), gone: tuple[str, ...] = ()) -> Json:
    waiting = [{"uid": f"a{place}", "spec": asked} for place, asked in enumerate(asks)]
    given = {"nodes": nodes, "pods": [*pods], "asks": waiting, "gone": [*gone], "now": NOW}
    return {"name": name, "kind": "cluster", "given": given}


def history(name: str, *steps: Json) -> Json:
    timed = [{"at": place * 1000, **step} for place, step in enumerate(steps)]
    return {"name": name, "kind": "history", "given": {"nodes": ["n1", "n2"], "steps": timed}}


def handmade() -> Iterator[Json]:
    yield from _texts()
    yield from _requests()
    yield from _modes()
    yield from _use()
    yield from _closed()
    yield from _histories()


def _texts() -> Iterator[Json]:
    plain = encode_allocation(
        Allocation(
            node="n1",
            uid="u",
            at="2026-11-26T10:00:00Z",
            unit="1Gi",
            containers={"main": {"c": 3}, "side": {"c": 1}},
            cards={"c": 4, "d": 1},
            other_units={"d": "1 card"},
        )
    )
    texts = {
        "as it is written": plain,
        "without cards: the sum of the containers": plain.replace('"cards":{"c":4,"d":1},', ""),
        "without a class: memory": plain.replace('"resource":"memory",', ""),
        "of another pod": plain.replace('"uid":"u"', '"uid":"v"'),
        "node and uid not first": plain.replace('{"node":"n1","uid":"u"', '{"uid":"u","node":"n1"'),
        "a blank in the beginning": plain.replace('{"node":"n1"', '{"node": "n1"'),
        "uid twice": plain[:-1] + ',"uid":"v"}',
        "the same uid twice": plain[:-1] + ',"uid":"u"}',
        "cards twice: the last ones": plain[:-1] + ',"cards":{"e":1,"f":2,"e":3}}',
        "a card twice: the last one": plain.replace('"c":4', '"c":4,"x":1,"c":5'),
        "negative units": plain.replace('"c":4', '"c":-4'),
        "units that are no whole number": plain.replace('"c":4', '"c":4.0'),
        "units as text": plain.replace('"c":4', '"c":"4"'),
        "an unknown field": plain[:-1] + ',"later":{"a":[1,null,true,1e400]}}',
        "an unknown class": plain.replace('"memory","cards"', '"vram","cards"'),
        "null for a text": plain.replace('"cpu":"0"', '"cpu":null'),
        "no unit": plain.replace('"unit":"1Gi",', ""),
        "half a character": plain.replace('"c":4', '"\\ud800":4'),
        "an escaped character": plain.replace('"c":4', '"\\ud83d\\ude00\\n\\u0001/":4'),
        "what has to be escaped": plain.replace('"c":4', '"\\"\\\\\\b\\f\\n\\r\\t\\u001f\x7f\u2028<>&":4'),
        "a control character": plain.replace('"c":4', '"\x01":4'),
        "text behind it": plain + "x",
        "a blank behind it": plain + " \n",
        "half of it": plain[: len(plain) // 2],
        "nothing": "",
        "a list": "[]",
        "a number with a zero in front": plain.replace('"c":4', '"c":04'),
        "a comma too many": plain.replace('"c":4,', '"c":4,,'),
    }
    for name, text in texts.items():
        yield {"name": f"annotation: {name}", "kind": "annotation", "given": {"text": text, "uid": "u"}}
    amounts = {
        "whole numbers": ["1", "2", "007", "+3"],
        "parts are rounded up": ["0.1", "100m", "1n", "1.0000000001"],
        "all binary: binary notation": ["256Mi", "768Mi"],
        "binary and decimal: decimal notation": ["1Ki", "1k"],
        "binary that divides into no suffix": ["0.3Ki", "0.5Ki"],
        "exponents": ["1e3", "1E3", "1e-3", "1E", "1Ei", "12e+2"],
        "exponents of more than 32 bits": ["1e4294967296", "1e2147483648", "1e9223372036854775808"],
        "the largest": ["9223372036854775807", "9223372036854775808", "8Ei", "1" * 100],
        "none": ["", "-1", "1 Gi", "1gi", "0x1", "1_000", "٣"],
        "nothing": ["0", "-0", ".", "+", "0Gi"],
        "as many digits as anybody likes": ["0." + "0" * 80 + "1", "1" * 80 + "e-79", "1." + "9" * 80],
    }
    for name, texts_ in amounts.items():
        yield {"name": f"quantity: {name}", "kind": "quantity", "given": texts_}
    units = ["1Gi", "1024Mi", "1.5Gi", "1/2 card", "1/99 card", "1/100 card", "1 card", MIXED_UNIT, "1Gi, 1 card, 1 card"]
    for text in [*units, "1Gi, 1/2 card", "1/2 card, 1Gi, 1 card", "0Gi", "1Ei", "1m", "", "9" * 40 + "Pi", "1.0001Ki"]:
        yield {"name": f"unit: {text[:30] or 'empty'}", "kind": "unit", "given": text}
    claims: dict[str, dict[str, str]] = {
        "aliyun": {"ALIYUN_COM_GPU_MEM_IDX": "1", "ALIYUN_COM_GPU_MEM_POD": "3"},
        "aliyun, less than the pod asks for": {"ALIYUN_COM_GPU_MEM_IDX": "1", "ALIYUN_COM_GPU_MEM_POD": "1"},
        "aliyun, no amount": {"ALIYUN_COM_GPU_MEM_IDX": "1"},
        "aliyun by container": {"scheduler.framework.gpushare.allocation": '{"a":{"0":1},"b":{"1":2,"01":4}}'},
        "aliyun, an index counts more": {
            "ALIYUN_COM_GPU_MEM_IDX": "1",
            "ALIYUN_COM_GPU_MEM_POD": "3",
            "scheduler.framework.gpushare.allocation": '{"a":{"0":1}}',
        },
        "aliyun by container, no card": {"scheduler.framework.gpushare.allocation": "{}"},
        "aliyun by container, malformed": {"scheduler.framework.gpushare.allocation": '{"a":{"x":1}}'},
        "volcano, several cards": {"volcano.sh/gpu-index": "2,0"},
        "volcano, none": {"volcano.sh/gpu-index": ""},
        "enflame": {"enflame.com/gcu-device-id": "0", "enflame.com/gcu-device-memory-request": "7"},
        "no number": {"enflame.com/gcu-device-id": "+1", "enflame.com/gcu-device-memory-request": "7"},
    }
    for name, written in claims.items():
        yield {"name": f"claim: {name}", "kind": "claim", "given": {"annotations": written, "total": 5}}


def _requests() -> Iterator[Json]:
    init, stays = container("init", {MEMORY: "6"}), container("log", {MEMORY: "2"}, restartPolicy="Always")
    wide = spec(*[container(f"c{number}", {MEMORY: str(2**62)}) for number in range(5)])
    pods = {
        "one container": one(MEMORY, 4),
        "an init container lends": spec(container("main", {MEMORY: "4"}), init=(init,)),
        "a smaller init container lends, too": spec(container("main", {MEMORY: "8"}), init=(init,)),
        "a sidecar stays": spec(container("main", {MEMORY: "4"}), init=(stays,)),
        "an init container after a sidecar": spec(container("main", {MEMORY: "1"}), init=(stays, init)),
        "an init container before a sidecar": spec(container("main", {MEMORY: "1"}), init=(init, stays)),
        "several containers": spec(*[container(f"c{number}", {MEMORY: "2"}) for number in range(6)]),
        "several classes": spec(container("a", {CARD: "1"}), container("b", {MEMORY: "2"}), container("c", {SLICE: "1"})),
        "a container that asks for several": spec(container("a", {MEMORY: "2", CARD: "1"}), container("b", {SLICE: "1"})),
        "more units than a pod may have": one(MEMORY, 65_537),
        "as many units as a pod may have": one(MEMORY, 65_536),
        "more units than 64 bits hold": wide,
        "parts of units": one(MEMORY, "2500m"),
        "nothing": one(MEMORY, 0),
        "an amount that is none": one(MEMORY, "many"),
        "somebody else's resource": one("example.com/gpu", 1),
        "a request without a limit": spec({"name": "a", "resources": {"requests": {MEMORY: "4"}}}),
        "CPU and memory": spec(
            {"name": "a", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}},
            {"name": "b", "resources": {"requests": {"memory": "512Mi"}}},
            init=(container("i", {"cpu": "8"}), container("s", {"cpu": "250m"}, restartPolicy="Always")),
        ),
        "two containers of one name": spec(container("a", {MEMORY: "1"}), container("b", {MEMORY: "2"}), container("a", {MEMORY: "4"})),
    }
    for name, written in pods.items():
        yield {"name": f"request: {name}", "kind": "request", "given": {"pod": written}}
    dialects = ["aliyun.com/gpu-mem", "volcano.sh/gpu-memory", "volcano.sh/gpu-number", "enflame.com/gcu-memory"]
    for resource in [*dialects, "tuya.com/vcuda-memory", "tuya.com/sgpu", "tuya.com/vcuda-core", "nvidia.com/gpu"]:
        for served in ([], ["nvidia.com/gpu"]):
            question = {"pod": one(resource, 2), "served": served}
            yield {"name": f"request: {resource}, {len(served)} shared", "kind": "request", "given": question}
    for size in (0, 262_144 - 2200, 262_144, 300_000):
        many = spec(*[container(f"c{number}", {SLICE: "64"}) for number in range(4)])
        for written in (one(MEMORY, 1), many):
            question = {"pod": written, "size": size}
            name = f"request: annotations of {size} bytes, {len(written['containers'])} containers"
            yield {"name": name, "kind": "request", "given": question}


def _modes() -> Iterator[Json]:
    for strategy in ("Binpack", "Spread"):
        asked = {"strategy": strategy}
        sizes = [node("n1", "Memory", cards("n1", 16, 8, 24, 8), spec=asked), node("n2", "Memory", cards("n2", 16), spec=asked)]
        yield cluster(f"{strategy}: cards of several sizes", sizes, *[one(MEMORY, n) for n in (1, 8, 9, 16, 24, 25)])
        halves = [node("n1", "Slices", cards("n1", 2, 2, 2), spec=asked)]
        taken = pod("u", "n1", {"n1-1": 1}, unit="1/2 card")
        yield cluster(f"{strategy}: slices of distinct cards", halves, *[one(SLICE, n) for n in (1, 2, 3, 4)], pods=(taken,))
        groups = [
            card("n1-0", 1, numaNode=0, linkGroup=0),
            card("n1-1", 1, numaNode=0, linkGroup=1),
            card("n1-2", 1, numaNode=0, linkGroup=1),
            card("n1-3", 1, numaNode=1),
            card("n1-4", 1, numaNode=1, linkGroup=0),
            card("n1-5", 1),
        ]
        whole = [node("n1", "Exclusive", groups, spec=asked), node("n2", "Exclusive", cards("n2", 1, 1), spec=asked)]
        yield cluster(f"{strategy}: whole cards that are near", whole, *[one(CARD, n) for n in range(1, 8)])
        open_ = [
            node("n1", "Mixed", mixed("n1", "", "Memory", "Slices", "Exclusive", ""), spec=asked),
            node("n2", "Mixed", mixed("n2", ""), spec=asked),
        ]
        yield cluster(f"{strategy}: mode Mixed, locked and free cards", open_, *[one(name, n) for name in (MEMORY, SLICE, CARD) for n in (1, 2, 3)])
        three = spec(container("a", {CARD: "1"}), container("b", {MEMORY: "2"}), container("c", {SLICE: "2"}))
        yield cluster(f"{strategy}: several classes together", [*open_, sizes[0]], three, spec(*three["containers"][:2]))
    lending = spec(container("main", {SLICE: "1"}), init=(container("i", {SLICE: "2"}), container("s", {SLICE: "1"}, restartPolicy="Always")))
    yield cluster("init and sidecar containers share cards", [node("n1", "Slices", cards("n1", 2, 2, 2))], lending)
    speeds = [node(f"n{n}", "Memory", cards(f"n{n}", 16, computeScore=score)) for n, score in ((1, 90), (2, 80), (3, 80))]
    yield cluster("slow cards first, then the first by name", speeds, one(MEMORY, 4))
    fast = [node(f"n{n}", "Exclusive", cards(f"n{n}", 1, computeScore=score)) for n, score in ((1, 90), (2, 80), (3, 80))]
    yield cluster("whole cards: fast cards first", fast, one(CARD, 1))
    for dialect, names in {
        "aliyun.com": ["aliyun.com/gpu-mem"],
        "volcano.sh": ["volcano.sh/gpu-memory", "volcano.sh/gpu-number"],
        "enflame.com": ["enflame.com/gcu-memory"],
        "tuya.com": ["tuya.com/vcuda-memory", "tuya.com/sgpu", "nvidia.com/gpu"],
    }.items():
        asked = {"dialect": dialect}
        nodes = [node("n1", "Mixed", mixed("n1", "", ""), spec=asked, dialect=dialect), node("n2", "Memory", cards("n2", 16))]
        yield cluster(f"{dialect}: what its nodes serve", nodes, *[one(name, 2) for name in (*names, MEMORY)])


def _use() -> Iterator[Json]:
    def memory(name: str, *fields: Json, pods: tuple[Json, ...] = (), gone: tuple[str, ...] = ()) -> Json:
        written = [card(f"n1-{place}", 16) | field for place, field in enumerate(fields)]
        return cluster(name, [node("n1", "Memory", written)], one(MEMORY, 6), one(MEMORY, 16), pods=pods, gone=gone)

    four, other = pod("u", "n1", {"n1-0": 4}), pod("v", "n1", {"n1-0": 8})
    yield memory("annotations alone", {}, {}, pods=(four, other))
    yield memory("the kubelet gave more than the annotation says", given("u", 12), {}, pods=(four,))
    yield memory("the kubelet gave less than the annotation says", given("u", 1), {}, pods=(four,))
    yield memory("the kubelet gave another card", {}, given("u", 4), pods=(four,))
    yield memory("a holder that the API does not know", given("x", 12), {}, pods=(four,))
    yield memory("units whose holder is not named", given("u", 4, allocated=12), {}, pods=(four,))
    yield memory("init containers lend", given("u", 4, 4, allocated=4), {}, pods=(four,))
    yield memory("init containers of one that is not booked lend", given("x", 8, 8, allocated=8), {}, pods=(four,))
    yield memory("an over-full card", given("x", 20), {}, pods=(four,))
    yield memory("over-full by annotations", {}, pods=(pod("u", "n1", {"n1-0": 30}),))
    yield memory("pods that would be gone", given("u", 4), given("x", 12), pods=(four, other), gone=("u", "x"))
    yield memory("one that would be gone lends", given("u", 8, 4, allocated=12), {}, pods=(four, other), gone=("u",))
    yield memory("a card of another unit", {}, {}, pods=(pod("u", "n1", {"n1-0": 4}, unit="3Gi"),))
    yield memory("a smaller unit is rounded up", {}, {}, pods=(pod("u", "n1", {"n1-0": 5}, unit="512Mi"),))
    small = pod("u", "n1", {"n1-0": 5}, unit="512Mi")
    yield memory("a smaller unit, and the kubelet has the pod", given("u", 3), {}, pods=(small,))
    yield memory("another class takes the whole card", {}, {}, pods=(pod("u", "n1", {"n1-0": 1}, unit="1 card"),))
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
            yield cluster(f"mode Mixed: lock {lock or 'none'}, booked {unit}", nodes, *asks, pods=(booked,), gone=("other",))
    legacy = {"uid": "u", "node": "n1", "annotations": {"ALIYUN_COM_GPU_MEM_IDX": "1", "ALIYUN_COM_GPU_MEM_POD": "4"}}
    legacy["spec"] = one("aliyun.com/gpu-mem", 4)
    for dialect in ("aliyun.com", "gpushare.io"):
        written = node("n1", "Memory", cards("n1", 16, 16), spec={"dialect": dialect}, dialect=dialect)
        yield cluster(f"a pod of a replaced system on a node in dialect {dialect}", [written], one(MEMORY, 16), pods=(legacy,))
    exclusive = node("n1", "Exclusive", cards("n1", 1, 1), spec={"dialect": "aliyun.com"}, dialect="aliyun.com")
    yield cluster("a pod of a replaced system takes a whole card", [exclusive], one(CARD, 1), one(CARD, 2), pods=(legacy,))


def _closed() -> Iterator[Json]:
    def registered(status: str, message: str) -> list[Json]:
        return [{"type": "Registered", "status": status, "message": message}]

    plain = cards("n1", 16)
    nodes = {
        "being deleted": node("n1", "Memory", plain) | {"metadata": {"name": "n1", "deletionTimestamp": "2026-11-26T10:00:00Z"}},
        "an unknown mode": node("n1", "Memory", plain, spec={"mode": "New"}),
        "no mode": node("n1", "Memory", plain, spec={"mode": ""}),
        "an unknown dialect": node("n1", "Memory", plain, spec={"dialect": "new.io"}),
        "no conditions": node("n1", "Memory", plain, conditions=None),
        "not registered": node("n1", "Memory", plain, conditions=registered("False", "it\nwaits\x1b[31m")),
        "a long message": node("n1", "Memory", plain, conditions=registered("Unknown", "é" * 600)),
        "another unit to come": node("n1", "Memory", plain, spec={"memoryUnit": "2Gi"}),
        "another mode to come": node("n1", "Memory", plain, spec={"mode": "Mixed"}),
        "another unit that is kept back": node("n1", "Memory", plain, spec={"memoryUnit": "2Gi", "unitChange": "Keep"}),
        "the same unit written differently": node("n1", "Memory", plain, spec={"memoryUnit": "1024Mi"}),
        "no slices to come": node("n1", "Memory", plain, spec={"mode": "Slices", "slicesPerCard": None}),
        "isolation to come": node("n1", "Memory", plain, spec={"isolation": {"memory": "Hook"}}),
        "isolation there": node("n1", "Memory", plain, spec={"isolation": {"memory": "Hook"}}, isolation="Hook"),
        "no healthy card": node("n1", "Memory", cards("n1", 16, health="Unhealthy")),
        "no open card": node("n1", "Memory", cards("n1", 16, cordoned=True)),
        "no cards": node("n1", "Memory", []),
        "no status": {"metadata": {"name": "n1"}, "spec": {"mode": "Memory", "memoryUnit": "1Gi"}},
        "a card without units": node("n1", "Memory", [{"uuid": "x"}]),
        "a number as text": node("n1", "Memory", cards("n1", 16, computeScore="80")),
        "null for a number": node("n1", "Memory", cards("n1", 16, index=None) + [card("n1-1", 16)]),
        "a part of a unit": node("n1", "Memory", [*plain, card("n1-1", 16, allocatedUnits=1.0)]),
        "pods that are no list": node("n1", "Memory", cards("n1", 16, pods={})),
        "a unit of no mode": node("n1", "Memory", plain, memoryUnit="1Gi, 1 card, 1 card"),
        "nothing but a name": {"metadata": {"name": "n1"}},
        "status null": {"metadata": {"name": "n1"}, "status": None},
        "spec null": {"metadata": {"name": "n1"}, "spec": None},
    }
    for name, written in nodes.items():
        yield cluster(f"GPUShareNode: {name}", [written], one(MEMORY, 2))
    twice = '{"metadata":{"name":"no"},"metadata":{"name":"n1"},"Spec":1,"status":{"cards":[{"uuid":"a","units":1,"units":2}]}}'
    yield cluster("GPUShareNode: equal keys, the last counts", [twice], one(MEMORY, 2))
    yield cluster("GPUShareNode: no name", [{"metadata": {}}, node("n1", "Memory", plain)], one(MEMORY, 2))


def _histories() -> Iterator[Json]:
    def share(name: str, **fields: Any) -> Json:
        return {"share": node(name, "Memory", cards(name, 16) + [card(f"{name}-1", 16, **fields)])}

    both, mine = (share("n1"), share("n2")), pod("u", "n1", {"n1-1": 4})
    shown, gone, expire = share("n1", **given("u", 4)), {"gone": "u"}, {"expire": True}
    bound, elsewhere = {"pod": mine}, {"pod": pod("u", "n1", {"n2-1": 8}, named="n2")}
    blank = {"pod": {"uid": "u", "node": "n1", "annotations": {}}}
    forged = {"pod": {**mine, "uid": "u", "annotations": pod("w", "n1", {"n1-0": 1})["annotations"]}}
    ask = {"reserve": {"uid": "r", "node": "n1", "spec": one(MEMORY, 5)}}
    late, much_later = {**expire, "at": 100_000}, {**expire, "at": 200_000}
    yield history("gone before its plugin told of it", *both, bound, gone, expire, late)
    yield history("gone, and its plugin tells of it then", *both, bound, gone, shown, late, much_later, share("n1"))
    yield history("gone, and its plugin tells of a part", *both, bound, gone, share("n1", **given("u", 2)), late)
    yield history("gone after its plugin told of it", *both, bound, shown, gone, share("n1"))
    yield history("given back before it is gone", *both, bound, shown, share("n1"), gone)
    yield history("given back, and told of a part alone", *both, bound, share("n1", **given("u", 2)), share("n1"), gone)
    yield history("deleted by force, and kept by the kubelet", *both, bound, shown, gone, late, much_later)
    yield history("an annotation that is gone", *both, bound, blank, gone, late)
    yield history("an annotation of another pod", *both, bound, forged, gone, late)
    yield history("an annotation that names another node", *both, bound, elsewhere, share("n2", **given("u", 8)), gone)
    yield history("an annotation that names another node, and back", *both, bound, elsewhere, bound, shown, gone)
    yield history("gone while it counts on two nodes", *both, bound, elsewhere, gone, shown, late)
    yield history("first seen with another node", *both, elsewhere, gone, late)
    yield history("a node without a GPUShareNode", bound, share("n1"), {"drop": "n1"}, shown, {"drop": "n1"}, gone, late)
    yield history("a reservation that becomes an allocation", *both, ask, {"pod": pod("r", "n1", {"n1-0": 5})}, {"release": "r"})
    yield history("a reservation that is given up", *both, ask, {"release": "r"}, ask)
    yield history("a reservation of other cards than the allocation", *both, ask, {"pod": pod("r", "n1", {"n1-1": 5})})
    yield history("what does not fit is not reserved", share("n1", **given("u", 16)), bound, ask, ask)
    yield history("seen again after it was gone", *both, bound, gone, bound, late)
    legacy = {"uid": "u", "node": "n1", "annotations": {"volcano.sh/gpu-index": "1"}, "spec": one("volcano.sh/gpu-memory", 3)}
    volcano = node("n1", "Memory", cards("n1", 16, 16), spec={"dialect": "volcano.sh"}, dialect="volcano.sh")
    yield history("a replaced system's pod before its node", {"pod": legacy}, {"share": volcano}, share("n1"), gone, late)
    yield history("a replaced system's pod, annotated then", {"share": volcano}, {"pod": legacy}, bound, gone)
    yield history("a replaced system's pod that is gone at once", {"pod": legacy}, gone, {"share": volcano})
