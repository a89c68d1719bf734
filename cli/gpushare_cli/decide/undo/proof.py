"""Which objects have to be without a trace, once policies are gone."""

from collections.abc import Callable, Collection

from gpushare_core.api.names import PLUGIN_NODE_LABEL, POLICY_KIND, POLICY_LABEL
from gpushare_core.text.json_object import Json


def traces_of(
    *, policies: Collection[str], nodes: Collection[str], staying: Collection[str], with_shared: bool = False
) -> Callable[[Json], bool]:
    """Returns whether an object, as JSON, may have traces of ``policies``, which were on ``nodes``.

    Where no policy stays, everything may. Else what the others have stays: the objects that name them, nodes
    that went over to them, and, without ``with_shared``, what all policies share.
    """

    def may_have(item: Json) -> bool:
        metadata = item.get("metadata") or {}
        labels, name = metadata.get("labels") or {}, metadata.get("name", "")
        owner = (
            labels.get(PLUGIN_NODE_LABEL)
            or labels.get(POLICY_LABEL)
            or (item.get("spec") or {}).get("policy")
        )
        if item.get("kind") == POLICY_KIND:
            return name in policies
        if item.get("kind") == "Node":
            return (name in nodes or with_shared) and owner not in staying
        return owner in policies or (with_shared and not owner)

    return may_have if staying else lambda _: True
