"""Annotations of pods and nodes: ours and those of every system that we stand in for, right and wrong."""

from typing import Any

from hypothesis import strategies as st
from tests.fuzz.strategies.odd_json import damaged, odd_texts
from tests.samples.dialects import left_by
from tests.samples.extender import annotation

from gpushare_core.api.names import (
    CORDON_ANNOTATION,
    SIMULATE_ANNOTATION,
    SIMULATED_LOAD_ANNOTATION,
)
from gpushare_core.dialects.table import ANNOTATION_KEYS, DIALECTS

SYSTEMS = ("aliyun.com", "volcano.sh", "enflame.com")
OURS = annotation("a", c0=4)
_NUMBERS = st.sampled_from(
    ["0", "1", "-1", "7", "9" * 18, "9" * 19, "9" * 5000, "1e3", "٣", "0,1", ",", "1.5", ""]
)
_CONTAINERS = st.sampled_from(
    [
        '{"main":{"0":4}}',
        '{"main":{"0":-4}}',
        '{"main":{"x":4}}',
        '{"main":{"0":1e40}}',
        '{"main":{"0":' + "9" * 5000 + "}}",
        '{"main":{"' + "9" * 5000 + '":1}}',
        '{"main":null}',
        "[" * 3000,
        '{"main":{"0":1,"0":2}}',
    ]
)


@st.composite
def damaged_text(draw: st.DrawFn, text: str) -> str:
    return draw(damaged(text.encode())).decode("utf-8", "replace")


ours = (
    damaged_text(OURS)
    | damaged_text(annotation("a", unit="1/4 card", c0=1, c1=1))
    | odd_texts
    | st.just(OURS)
)
"""Values of our own annotation, on the pod ``a``."""

of_dialects: st.SearchStrategy[dict[str, str]] = st.dictionaries(
    st.sampled_from(ANNOTATION_KEYS), _NUMBERS | _CONTAINERS | odd_texts, max_size=6
)


@st.composite
def on_pods(draw: st.DrawFn) -> dict[str, str]:
    """What stands on a pod: of our own, of one other system, and of several that contradict each other."""
    found: dict[str, Any] = {}
    if draw(st.booleans()):
        found |= left_by(draw(st.sampled_from(SYSTEMS)))
    found |= draw(of_dialects)
    if draw(st.booleans()):
        found[DIALECTS["gpushare.io"].allocation_annotation] = draw(ours)
    if draw(st.booleans()):
        found[SIMULATED_LOAD_ANNOTATION] = draw(loads)
    return found


_WORDS = st.sampled_from(
    [
        "fail=0",
        "vanish=0,1",
        "shift=1",
        "shift=-" + "9" * 4000,
        "xid=0:79",
        "xid=0:" + "9" * 4000,
        "driver=hung",
        "repair=1",
        "fail=",
        "=",
        "fail",
        "xid=1:2:3",
        "fail=" + ",".join("0" * 2000),
        "shift=" + "9" * 5000,
    ]
)
simulations = st.lists(_WORDS | odd_texts, max_size=5).map(" ".join)
loads = (
    st.lists(
        st.sampled_from(
            [
                "main=3Gi",
                "3Gi",
                "=",
                "main=",
                "main=-1",
                "main=" + "9" * 41,
                "a b=1Gi",
                "main=1e3",
                ",",
                "x=0.5",
            ]
        ),
        max_size=4,
    ).map(",".join)
    | odd_texts
)
cordons = st.lists(
    st.sampled_from(["0", "1", "GPU-0", "GPU-9", "99", "-1", "9" * 5000]) | odd_texts, max_size=6
).map(",".join)

on_share_nodes: st.SearchStrategy[dict[str, str]] = st.fixed_dictionaries(
    {}, optional={CORDON_ANNOTATION: cordons, SIMULATE_ANNOTATION: simulations}
)
