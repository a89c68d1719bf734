"""Who asks the API server for what, and which fault hits it."""

import base64
import json

import pytest
from chaos.proxy.call import Call, call
from chaos.proxy.fault import RECONNECT_SECONDS, ActiveFaults, ApiFault, Manner


def token(**claims: object) -> str:
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"Bearer header.{payload}.signature"


PLUGIN = token(
    sub="system:serviceaccount:gpushare-system:gpushare-plugin",
    **{"kubernetes.io": {"node": {"name": "gpu-1"}}},
)
PODS = "/api/v1/namespaces/default/pods"


@pytest.mark.parametrize(
    ("method", "path", "query", "verb"),
    [
        pytest.param("GET", PODS, {}, "list", id="list"),
        pytest.param("GET", "/api/v1/namespaces", {}, "list", id="list of namespaces"),
        pytest.param("GET", "/api/v1/namespaces/default", {}, "get", id="one namespace"),
        pytest.param("GET", f"{PODS}/a", {}, "get", id="one pod"),
        pytest.param("GET", "/apis/gpushare.io/v1alpha1/gpusharenodes", {}, "list", id="list of a group"),
        pytest.param("GET", "/apis/gpushare.io/v1alpha1/gpusharenodes/gpu-1", {}, "get", id="one of a group"),
        pytest.param("GET", PODS, {"watch": "1"}, "watch", id="watch"),
        pytest.param("GET", PODS, {"watch": "true"}, "watch", id="watch as kopf asks"),
        pytest.param("GET", "/version", {}, "get", id="no object at all"),
        pytest.param("POST", f"{PODS}/a/binding", {}, "create", id="Binding"),
        pytest.param("PATCH", f"{PODS}/a", {}, "patch", id="patch"),
        pytest.param("DELETE", f"{PODS}/a", {}, "delete", id="delete"),
    ],
)
def test_verbs_are_those_of_rbac(method: str, path: str, query: dict[str, str], verb: str) -> None:
    assert call(method, path, query=query, authorization="").verb == verb


@pytest.mark.parametrize(
    ("authorization", "program", "node"),
    [
        pytest.param(PLUGIN, "gpushare-plugin", "gpu-1", id="a pod's token"),
        pytest.param(token(sub="system:serviceaccount:a:b"), "b", "", id="a token of no pod"),
        pytest.param("Bearer 0123456789abcdef", "", "", id="a token from a file"),
        pytest.param("", "", "", id="no token"),
        pytest.param("Bearer a.%%%.c", "", "", id="no base64"),
        pytest.param("Bearer a.AAAA.c", "", "", id="no JSON"),
    ],
)
def test_the_token_says_who_calls(authorization: str, program: str, node: str) -> None:
    asked = call("GET", PODS, query={}, authorization=authorization)
    assert (asked.program, asked.node) == (program, node)


BIND = Call("create", f"{PODS}/a/binding", "gpushare-extender", "control-plane-1")
WATCH = Call("watch", PODS, "gpushare-plugin", "gpu-1")


@pytest.mark.parametrize(
    ("fault", "hit", "missed"),
    [
        pytest.param(ApiFault(manner=Manner.STATUS), [BIND, WATCH], [], id="everything"),
        pytest.param(
            ApiFault(manner=Manner.STATUS, programs=("gpushare-plugin",)), [WATCH], [BIND], id="a program"
        ),
        pytest.param(ApiFault(manner=Manner.STATUS, nodes=("gpu-1",)), [WATCH], [BIND], id="a node"),
        pytest.param(ApiFault(manner=Manner.STATUS, verbs=("create",)), [BIND], [WATCH], id="a verb"),
        pytest.param(ApiFault(manner=Manner.STATUS, path="/binding$"), [BIND], [WATCH], id="a path"),
        pytest.param(ApiFault(manner=Manner.LOST_ANSWER), [BIND], [WATCH], id="only writes have an outcome"),
        pytest.param(ApiFault(manner=Manner.EXPIRED), [WATCH], [BIND], id="only watches expire"),
    ],
)
def test_a_fault_hits_what_it_is_meant_for(fault: ApiFault, hit: list[Call], missed: list[Call]) -> None:
    assert [call for call in (BIND, WATCH) if fault.matches(call)] == hit
    assert not any(fault.matches(call) for call in missed)


def test_every_third_call_is_hit_the_first_one_included() -> None:
    faults = ActiveFaults()
    fault = ApiFault(manner=Manner.STATUS, every=3)
    faults.begin(1, fault)
    assert [faults.of(BIND) for _ in range(5)] == [fault, None, None, fault, None]
    assert faults.end(1) == 2


def test_of_several_faults_the_first_one_hits_until_it_ends() -> None:
    faults = ActiveFaults()
    first, second = ApiFault(manner=Manner.SILENT), ApiFault(manner=Manner.RESET)
    faults.begin(1, first)
    faults.begin(2, second)
    assert faults.of(BIND) == first
    faults.end(1)
    assert faults.of(BIND) == second
    assert faults.end(1) == 0


def test_an_open_watch_goes_on_where_only_calls_are_refused() -> None:
    faults = ActiveFaults()
    faults.begin(1, ApiFault(manner=Manner.STATUS))
    assert faults.of_stream(WATCH) is None


def test_a_broken_watch_is_told_of_until_it_is_open_again() -> None:
    now = 100.0
    faults = ActiveFaults(clock=lambda: now)
    faults.begin(1, ApiFault(manner=Manner.CLOSED))
    assert faults.of_stream(WATCH) is not None
    faults.end(1)
    assert faults.broken_watches() == [WATCH]
    assert faults.of(WATCH) is None
    assert faults.broken_watches() == []


def test_a_broken_watch_whose_program_is_gone_is_not_told_of_for_ever() -> None:
    now = 100.0
    faults = ActiveFaults(clock=lambda: now)
    faults.begin(1, ApiFault(manner=Manner.RESET))
    assert faults.of(WATCH) is not None
    now += RECONNECT_SECONDS + 1
    assert faults.broken_watches() == []


def test_a_watch_that_is_only_slow_is_open() -> None:
    faults = ActiveFaults()
    faults.begin(1, ApiFault(manner=Manner.LATE))
    assert faults.of(WATCH) is not None
    assert faults.broken_watches() == []
