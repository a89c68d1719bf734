"""Which objects have to be without a trace."""

from typing import Any

import pytest

from gpushare_cli.decide.undo.proof import traces_of
from gpushare_core.api.names import PLUGIN_NODE_LABEL, POLICY_LABEL


def item(kind: str, name: str, *, spec: Any = None, **labels: str) -> Any:
    keys = {"policy": POLICY_LABEL, "plugin": PLUGIN_NODE_LABEL}
    metadata = {"name": name, "labels": {keys[key]: value for key, value in labels.items()}}
    return {"kind": kind, "metadata": metadata, "spec": spec or {}}


OF_THE_DELETED = [
    item("GPUSharePolicy", "default"),
    item("GPUShareNode", "gpu-1", spec={"policy": "default"}),
    item("DaemonSet", "gpushare-plugin-default", policy="default"),
    item("Node", "gpu-1", plugin="default"),
    item("Node", "gpu-1"),
]
OF_OTHERS = [
    item("GPUSharePolicy", "later"),
    item("GPUShareNode", "gpu-2", spec={"policy": "later"}),
    item("DaemonSet", "gpushare-plugin-later", policy="later"),
    item("DaemonSet", "gpushare-extender"),
    item("Node", "gpu-1", plugin="later"),
    item("Node", "gpu-2", plugin="later"),
]


def test_what_all_share_has_to_go_where_no_other_policy_needs_it() -> None:
    may_have = traces_of(policies=["default"], nodes=["gpu-1"], staying=["later"], with_shared=True)
    assert all(map(may_have, OF_THE_DELETED))
    left = [item("DaemonSet", "gpushare-extender"), item("Node", "control-plane-1")]
    assert all(map(may_have, left))
    assert not any(may_have(other) for other in OF_OTHERS if other not in left)


@pytest.mark.parametrize("staying", [["later"], []], ids=["one stays", "none stays"])
def test_what_was_of_the_deleted_policies_has_to_go(staying: list[str]) -> None:
    may_have = traces_of(policies=["default"], nodes=["gpu-1"], staying=staying)
    assert all(map(may_have, OF_THE_DELETED))
    assert [may_have(other) for other in OF_OTHERS] == [not staying] * len(OF_OTHERS)
