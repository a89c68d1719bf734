"""Clusters of any kind: the status says what is wrong with them, or what it could not read."""

import asyncio
import io
import json
from argparse import Namespace
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.status_facts import (
    NOW,
    condition,
    deployment_object,
    lease_object,
    node_object,
    policy_object,
    program_object,
    unplaced_object,
)
from tests.fuzz.fuzzing import fuzzes
from tests.fuzz.strategies.odd_json import encoded, mutated

from gpushare_cli.decide.objects.node_state import NodeStateReader
from gpushare_cli.decide.status import _policy_state, status_report
from gpushare_cli.errors import CannotLookError
from gpushare_cli.gather.status_facts import PartReader, _waiting, read_status_facts
from gpushare_cli.output.format import Format
from gpushare_cli.output.printer import printer_of
from gpushare_cli.output.progress import Silence
from gpushare_cli.output.terminal import ColorChoice
from gpushare_cli.views.status import status_view
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.paths import DEPLOYMENTS, PODS, POLICIES, SERVER_VERSION, SHARE_NODES
from gpushare_core.kube.request import ApiRequest
from gpushare_core.kube.response import decoded
from gpushare_core.text.json_object import Json

T = TypeVar("T")

LEASES = "/apis/coordination.k8s.io/v1/namespaces/gpushare-system/leases"
LISTS = {
    POLICIES: policy_object(condition("Degraded", "True", "InvalidSpec", "x"), name="p"),
    SHARE_NODES: node_object(
        condition("Registered", "Unknown", "PluginSilent"),
        cards=[{"index": 1, "units": 4, "cordoned": True, "lock": "Slices", "healthReason": "Xid"}],
    ),
    PODS: unplaced_object("p"),
    DEPLOYMENTS: deployment_object(),
    "/api/v1/namespaces/gpushare-system/pods": program_object("extender", ready=False, waiting="Crash"),
    LEASES: lease_object("plugin.gpu-1"),
}
OBJECTS: dict[str, Json] = {
    SERVER_VERSION: {"gitVersion": "v1.31.0"},
    f"{LEASES}/gpushare-operator": lease_object(),
    f"{LEASES}/gpushare-extender-calls": lease_object(
        annotations={"gpushare.io/other-schedulers": "3 ml/a ml/b"}
    ),
}
ANSWERS: dict[str, Json] = {
    **{path: {"metadata": {}, "items": [item, item]} for path, item in LISTS.items()},
    **OBJECTS,
}


@dataclass(frozen=True, slots=True)
class OddClient:
    """Answers one path with something odd."""

    path: str
    content: bytes

    async def read(self, request: ApiRequest, *, shape: type[T]) -> T:
        content = (
            self.content if request.path == self.path else json.dumps(ANSWERS.get(request.path, {})).encode()
        )
        return decoded(request, content, shape)


@st.composite
def odd_clients(draw: Any) -> OddClient:
    path = draw(st.sampled_from(sorted(ANSWERS)))
    return OddClient(path, draw(encoded(mutated(ANSWERS[path]))))


@given(odd_clients())
@fuzzes(PartReader.list, _waiting, NodeStateReader.read, _policy_state, few=30)
def test_a_status_is_a_page_and_a_document_whatever_the_cluster_says(client: OddClient) -> None:
    try:
        facts = asyncio.run(read_status_facts(cast("KubeClient", client), now=NOW, progress=Silence()))
    except CannotLookError:
        return
    report = status_report(facts)
    for output in (Format.WIDE, Format.JSON):
        options = Namespace(color=ColorChoice.NEVER, output=output, no_headers=False, ascii=True)
        file = io.StringIO()
        printer_of(file, options, {"COLUMNS": "80"}).print(report, status_view)
        assert file.getvalue().isascii()
        assert file.getvalue().replace("\n", "").isprintable()
