"""Files of isolation that containers were given: they stay on a node until the last of these has ended, and
only a plugin removes them."""

from collections.abc import Mapping

from gpushare_core.api.plugin_heartbeat import IsolationFiles
from gpushare_operator.backends.teardown_step import EVERY_POLICY, Leftover, leftovers
from gpushare_operator.cluster.labels import LEAVE_ISOLATION_FILES_ANNOTATION
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.desired.names import plugin_name
from gpushare_operator.desired.plugin_platform import PluginPlatform

UNKNOWN = Leftover("isolation files, which plugins have not been asked about yet")
HOW_TO_LEAVE = f"the annotation {LEAVE_ISOLATION_FILES_ANNOTATION}=true of the policy leaves them there"


def isolation_files(snapshot: ClusterSnapshot, policy: str) -> Mapping[str, IsolationFiles] | None:
    """Returns node name -> the files there, of the policy's nodes, as their plugins say; None while that is
    not known. On a node that is not Ready nobody removes anything."""
    if snapshot.isolation_files is None:
        return None
    nodes = {name: snapshot.nodes.get(name) for name in snapshot.isolation_files}
    return {
        name: snapshot.isolation_files[name]
        for name, node in sorted(nodes.items())
        if node and node.ready and (policy in (EVERY_POLICY, node.named_policy))
    }


def isolation_files_left(snapshot: ClusterSnapshot, policy: str) -> list[Leftover]:
    """Returns what the plugins of ``policy`` are still needed for, unless people want the files left."""
    going = snapshot.policies.get(policy)
    if going and going.leaves_isolation_files:
        return []
    files = isolation_files(snapshot, policy)
    if files is None:
        daemon_set = snapshot.daemon_sets.get(plugin_name(policy))
        platform = PluginPlatform.of_daemon_set(daemon_set.body) if daemon_set else None
        return [UNKNOWN] if platform and platform.keeps_isolation_files else []
    needing = [pod for left in files.values() for pod in left.pods]
    needing += [f"{left.more} more on {name}" for name, left in files.items() if left.more]
    unneeded = [name for name, left in files.items() if not left.pods]
    return [
        *leftovers(f"isolation files that pods need until they end ({HOW_TO_LEAVE}): pods", needing),
        *leftovers("isolation files, which the plugin removes now, on", unneeded),
    ]
