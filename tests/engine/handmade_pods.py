"""Cases made by hand about what is written on pods, and what pods ask for."""

from collections.abc import Iterator

from tests.engine.shapes import CARD, MEMORY, MIXED_UNIT, SLICE, container, one, spec

from gpushare_core.allocation_annotation import Allocation, encode_allocation
from gpushare_core.text.json_object import Json


def written_on_pods() -> Iterator[Json]:
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
        "of another pod with a long UID": plain.replace('"uid":"u"', f'"uid":"{"é" * 270}"'),
        "a container twice: the last one": plain.replace('"side":', '"main":').replace(
            '"cards":{"c":4,"d":1},', ""
        ),
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
        "a tab in a text": plain.replace('"c":4', '"\t":4'),
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
    units = [
        "1Gi",
        "1024Mi",
        "1.5Gi",
        "1/2 card",
        "1/99 card",
        "1/100 card",
        "1 card",
        MIXED_UNIT,
        "1Gi, 1 card, 1 card",
    ]
    for text in [
        *units,
        "1Gi, 1/2 card",
        "1/2 card, 1Gi, 1 card",
        "0Gi",
        "1Ei",
        "1m",
        "",
        "9" * 40 + "Pi",
        "1.0001Ki",
    ]:
        yield {"name": f"unit: {text[:30] or 'empty'}", "kind": "unit", "given": text}
    claims: dict[str, dict[str, str]] = {
        "aliyun": {"ALIYUN_COM_GPU_MEM_IDX": "1", "ALIYUN_COM_GPU_MEM_POD": "3"},
        "aliyun, less than the pod asks for": {"ALIYUN_COM_GPU_MEM_IDX": "1", "ALIYUN_COM_GPU_MEM_POD": "1"},
        "aliyun, no amount": {"ALIYUN_COM_GPU_MEM_IDX": "1"},
        "aliyun by container": {
            "scheduler.framework.gpushare.allocation": '{"a":{"0":1},"b":{"1":2,"01":4}}'
        },
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
        for total in (5, 20):
            question = {"annotations": written, "total": total}
            yield {"name": f"claim: {name}, of {total}", "kind": "claim", "given": question}


def requests() -> Iterator[Json]:
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
        "several classes": spec(
            container("a", {CARD: "1"}), container("b", {MEMORY: "2"}), container("c", {SLICE: "1"})
        ),
        "a container that asks for several": spec(
            container("a", {MEMORY: "2", CARD: "1"}), container("b", {SLICE: "1"})
        ),
        "more units than a pod may have": one(MEMORY, 65_537),
        "as many units as a pod may have": one(MEMORY, 65_536),
        "more units than 64 bits hold": wide,
        "parts of units": one(MEMORY, "2500m"),
        "nothing": one(MEMORY, 0),
        "an amount that is none": one(MEMORY, "many"),
        "somebody else's resource": one("example.com/gpu", 1),
        "a request without a limit": spec({"name": "a", "resources": {"requests": {MEMORY: "4"}}}),
        "CPU and memory": spec(
            {
                "name": "a",
                "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}},
            },
            {"name": "b", "resources": {"requests": {"memory": "512Mi"}}},
            init=(container("i", {"cpu": "8"}), container("s", {"cpu": "250m"}, restartPolicy="Always")),
        ),
        "two containers of one name": spec(
            container("a", {MEMORY: "1"}), container("b", {MEMORY: "2"}), container("a", {MEMORY: "4"})
        ),
    }
    for name, written in pods.items():
        yield {"name": f"request: {name}", "kind": "request", "given": {"pod": written}}
    dialects = [
        "aliyun.com/gpu-mem",
        "volcano.sh/gpu-memory",
        "volcano.sh/gpu-number",
        "enflame.com/gcu-memory",
    ]
    for resource in [
        *dialects,
        "tuya.com/vcuda-memory",
        "tuya.com/sgpu",
        "tuya.com/vcuda-core",
        "nvidia.com/gpu",
    ]:
        for served in ([], ["nvidia.com/gpu"]):
            question = {"pod": one(resource, 2), "served": served}
            yield {"name": f"request: {resource}, {len(served)} shared", "kind": "request", "given": question}
    for size in (0, 262_144 - 2200, 262_144, 300_000):
        many = spec(*[container(f"c{number}", {SLICE: "64"}) for number in range(4)])
        for written in (one(MEMORY, 1), many):
            sized: Json = {"pod": written, "size": size}
            name = f"request: annotations of {size} bytes, {len(written['containers'])} containers"
            yield {"name": name, "kind": "request", "given": sized}
