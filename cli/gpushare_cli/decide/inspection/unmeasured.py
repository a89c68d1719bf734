"""Why the use of cards or containers is not known, in a sentence for each reason. Pure."""

from collections.abc import Iterable, Sequence

from gpushare_cli.decide.inspection.shared_node import SharedNode
from gpushare_cli.wording import listed


def unmeasured_sentences(nodes: Iterable[SharedNode]) -> Sequence[str]:
    """Returns such as ``Nodes gpu-1, gpu-2: nothing is measured (...).``"""
    by_reason: dict[str, list[str]] = {}
    for node in nodes:
        if node.unmeasured_reason:
            by_reason.setdefault(node.unmeasured_reason, []).append(node.name)
    return [
        f"{'Node' if len(names) == 1 else 'Nodes'} {listed(names)}: {reason}"
        for reason, names in by_reason.items()
    ]
