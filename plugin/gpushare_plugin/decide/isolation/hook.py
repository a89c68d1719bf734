"""Row Hook: a library in the container refuses CUDA's allocations beyond the container's share."""

from dataclasses import replace

from gpushare_core.api.enums import MemoryIsolation
from gpushare_plugin.decide.held.checkpoint import ISOLATION_VARIABLE, LIMITS_PATH
from gpushare_plugin.decide.isolation.kind import (
    GrantedMemory,
    IsolatedShare,
    IsolationEquipment,
    IsolationFacts,
    IsolationFinding,
    IsolationKind,
)
from gpushare_plugin.decide.isolation.limits_file import limits_file, read_limits
from gpushare_plugin.decide.units.quantity_text import quantity_text
from gpushare_plugin.devices.card import HostMount

LIBRARY = "libgpushare-cuda.so"
PRELOAD = "ld.so.preload"
LIMITS_FOLDER = "limits"
"""On the node, in the folder of files for isolation."""
LIBRARY_PATH = f"/opt/gpushare/lib/{LIBRARY}"
PRELOAD_PATH = "/etc/ld.so.preload"
"""In the container."""
BYPASSED = (
    "it uses more memory than the hook allows: its program bypasses the hook, as a statically linked one or"
    " one with musl does"
)
UNLIMITED = "nothing limits it once it restarts"
"""Containerd makes an empty folder where the source of a mount is missing."""
TOO_SMALL = (
    "its share of {share} has no room beside a CUDA context, which counts as {context}: programs are out of"
    " memory as soon as they use the card; ask for more units, or lower isolation.contextMemory in the policy"
    " if a context takes less on this card"
)
PRELOAD_CONTENT = f"{LIBRARY_PATH}\n".encode()
NOT_KNOWN = "the kubelet's checkpoint does not say which file of limits it was given"


def _equipment(granted: GrantedMemory) -> IsolationEquipment:
    identity, content = limits_file(granted)
    limits = f"{granted.folder}/{LIMITS_FOLDER}/{identity}"
    return IsolationEquipment(
        variables={ISOLATION_VARIABLE: MemoryIsolation.HOOK.value},
        mounts=(
            HostMount(f"{granted.folder}/{PRELOAD}", PRELOAD_PATH),
            HostMount(f"{granted.folder}/{LIBRARY}", LIBRARY_PATH),
            HostMount(limits, LIMITS_PATH),
        ),
        files={limits: content},
    )


def _in_force(isolated: IsolatedShare, facts: IsolationFacts) -> IsolationFinding:
    if unread := facts.hook.read_problem:
        return IsolationFinding(in_force=None, seen=unread.message)
    if not isolated.given.identity:
        return IsolationFinding(in_force=None, seen=NOT_KNOWN)
    content = facts.hook.limits.get(isolated.given.identity)
    if content is None:
        return IsolationFinding(
            in_force=False,
            seen=f"its file of limits is gone from the node: {UNLIMITED}",
        )
    given = read_limits(content, isolated.given.identity, isolated.numbers)
    if given is None:
        return IsolationFinding(in_force=False, seen="its file of limits is not as it was written")
    limit = next((one.memory for one in given.limits if one.uuid == isolated.share.card), 0)
    found = IsolationFinding(in_force=True, limit=limit, uncounted=given.context_memory)
    if missing := facts.hook.missing:
        seen = f"{' and '.join(missing)} is gone from the node: {UNLIMITED}"
        return replace(found, in_force=False, seen=seen)
    if isolated.share in facts.hook.exceeding:
        return replace(found, in_force=False, seen=BYPASSED)
    if limit <= given.context_memory:
        too_small = TOO_SMALL.format(share=quantity_text(limit), context=quantity_text(given.context_memory))
        return replace(found, seen=too_small, is_useless=True)
    return found


HOOK = IsolationKind(
    name=MemoryIsolation.HOOK,
    unable=lambda facts: facts.hook.problem,
    equipment=_equipment,
    in_force=_in_force,
    paths=(PRELOAD_PATH, LIBRARY_PATH, LIMITS_PATH),
)
