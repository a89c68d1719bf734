"""Files of isolation that containers were given: they stay on a node until the last of these has ended, and
only a plugin removes them."""

from collections.abc import Mapping

from gpushare_core.api.plugin_heartbeat import IsolationFiles
from gpushare_core.text.json_object import Json
from gpushare_operator.actions import Action, ApplyDaemonSet, DeleteDaemonSet
from gpushare_operator.backends.teardown_step import EVERY_POLICY, Leftover, leftovers
from gpushare_operator.cluster.labels import LEAVE_ISOLATION_FILES_ANNOTATION
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.desired.names import plugin_name
from gpushare_operator.desired.plugin_platform import PluginPlatform

UNKNOWN = Leftover("isolation files, on which plugins have not reported yet")
HOW_TO_LEAVE = f"the annotation {LEAVE_ISOLATION_FILES_ANNOTATION}=true of the policy leaves them there"


def isolation_files(snapshot: ClusterSnapshot, policy: str) -> Mapping[str, IsolationFiles]:
    """Returns node name -> the files there, of the policy's nodes, as far as their plugins have told."""
    told = _told(snapshot, policy) or {}
    return {name: files for name, files in told.items() if files is not None}


def may_have_more_files(snapshot: ClusterSnapshot, policy: str) -> bool:
    """Returns whether plugins of ``policy`` have not told yet, which had a folder for such files."""
    told, daemon_set = _told(snapshot, policy), snapshot.daemon_sets.get(plugin_name(policy))
    is_known = told is not None and None not in told.values()
    return not is_known and daemon_set is not None and _keeps_files(daemon_set.body)


def takes_files_folder_away(snapshot: ClusterSnapshot, action: Action) -> bool:
    """Returns whether plugins have a folder for such files, and none after ``action``."""
    if not isinstance(action, ApplyDaemonSet | DeleteDaemonSet):
        return False
    present = snapshot.daemon_sets.get(action.name)
    is_kept = isinstance(action, ApplyDaemonSet) and _keeps_files(action.body)
    return present is not None and _keeps_files(present.body) and not is_kept


def _told(snapshot: ClusterSnapshot, policy: str) -> Mapping[str, IsolationFiles | None] | None:
    """On a node that is not Ready nobody removes anything."""
    if snapshot.isolation_files is None:
        return None
    nodes = {name: snapshot.nodes.get(name) for name in snapshot.isolation_files}
    return {
        name: snapshot.isolation_files[name]
        for name, node in sorted(nodes.items())
        if node and node.ready and (policy in (EVERY_POLICY, node.named_policy))
    }


def _keeps_files(daemon_set: Json) -> bool:
    return PluginPlatform.of_daemon_set(daemon_set).keeps_isolation_files


def isolation_files_left(snapshot: ClusterSnapshot, policy: str) -> list[Leftover]:
    """Returns what the plugins of ``policy`` are still needed for, unless people want the files left."""
    going = snapshot.policies.get(policy)
    if going and going.leaves_isolation_files:
        return []
    files = isolation_files(snapshot, policy)
    needing = [pod for left in files.values() for pod in left.pods]
    needing += [f"{left.more} more on {name}" for name, left in files.items() if left.more]
    plugins = {name: snapshot.states[name].plugin for name in files}
    stuck = [name for name, plugin in plugins.items() if plugin is None or not plugin.ready]
    unneeded = [name for name, left in files.items() if not left.pods and name not in stuck]
    return [
        *leftovers(f"isolation files that pods need until they end ({HOW_TO_LEAVE}): pods", needing),
        *leftovers("isolation files, which the plugin removes now, on", unneeded),
        *leftovers(f"isolation files, which no plugin is there to remove ({HOW_TO_LEAVE}), on", stuck),
        *([UNKNOWN] if may_have_more_files(snapshot, policy) else []),
    ]
