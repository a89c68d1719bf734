"""Inventories of a node, as a vendor's agent writes them."""

ENFLAME = """\
# Two cards of 16 GiB.
cdiKind: enflame.com/gcu
container:
  deviceNodes: [/dev/gcuctl]
  mounts: [/usr/lib/libefml.so]
  environment: {ENFLAME_LOG: "1"}
  visibleCards: {variable: GCU_VISIBLE, by: Index}
health:
  command: [/etc/gpushare/healthy, "{uuid}", "--index={index}"]
  periodSeconds: 10
  timeoutSeconds: 2
cards:
- uuid: GCU-U53000090104
  memory: 16Gi
  model: T20
  computeScore: 200
  numaNode: 1
  linkGroup: 0
  cdiName: gcu0
  deviceNodes:
  - {hostPath: /dev/gcu-by-id/U53000090104, containerPath: /dev/gcu0, permissions: rwm}
- uuid: GCU-U53000090105
  memory: 16Gi
  deviceNodes: [/dev/gcu1]
"""


def card_lines(uuid: str = "GCU-0", memory: str = "16Gi", **fields: str) -> str:
    """One card, a field a line: ``cards:`` is the first."""
    lines = ["cards:", f"- uuid: {uuid}", f"  memory: {memory}"]
    return "\n".join([*lines, *(f"  {name}: {value}" for name, value in fields.items()), ""])
