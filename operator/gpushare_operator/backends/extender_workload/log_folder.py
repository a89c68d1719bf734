"""Where the extender's log is kept on its host, and what lets it write there without being root."""

from dataclasses import dataclass

from gpushare_core.text.json_object import Json
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.desired.names import EXTENDER_NAME, Installation
from gpushare_operator.desired.plugin_platform import LOGS, LOGS_MOUNT
from gpushare_operator.desired.pod_template import UNPRIVILEGED, confined, host_path, mount, pulled
from gpushare_operator.policies.decisive_policy import policies_in_force

PREPARATION = "log-folder"
OWN_FOLDER = "extender"


@dataclass(frozen=True, slots=True)
class ExtenderLog:
    """``folder`` is the extender's own on its host; empty: no log is kept there."""

    folder: str = ""

    @classmethod
    def below(cls, folder: str) -> "ExtenderLog":
        """Returns a folder of the extender's own below ``folder``, where others may keep logs, too: in a
        shared folder anybody could place links for other writers to follow."""
        return cls(f"{folder}/{OWN_FOLDER}" if folder else "")

    @classmethod
    def of_daemon_set(cls, body: Json) -> "ExtenderLog":
        pod = body.get("spec", {}).get("template", {}).get("spec", {})
        volumes = (volume for volume in pod.get("volumes", ()) if volume.get("name") == LOGS)
        return cls(next((volume.get("hostPath", {}).get("path", "") for volume in volumes), ""))

    @property
    def arguments(self) -> list[str]:
        return ["--log-folder", LOGS_MOUNT] if self.folder else []

    @property
    def volumes(self) -> list[Json]:
        """The kubelet makes a missing folder, owned by root."""
        return [host_path(LOGS, self.folder, kind="DirectoryOrCreate")] if self.folder else []

    @property
    def mounts(self) -> list[Json]:
        return [mount(LOGS, LOGS_MOUNT)] if self.folder else []

    def pod_fields(self, installation: Installation) -> Json:
        """Returns the init container that gives the folder to the extender's group. Root may do that without
        any capability, because the pod's group is the extender's."""
        return {"initContainers": [_preparation(installation)]} if self.folder else {}


def _preparation(installation: Installation) -> Json:
    return {
        "name": PREPARATION,
        **pulled(installation),
        "command": ["gpushare-hostctl"],
        "args": ["log-folder", "--folder", LOGS_MOUNT, "--group", str(UNPRIVILEGED)],
        "securityContext": confined(runAsNonRoot=False, runAsUser=0),
        "volumeMounts": [mount(LOGS, LOGS_MOUNT)],
        "resources": {"requests": {"cpu": "20m", "memory": "48Mi"}, "limits": {"memory": "128Mi"}},
    }


NOT_KEPT = ExtenderLog()


def extender_log(snapshot: ClusterSnapshot) -> ExtenderLog:
    """Returns where extenders keep their log besides: the oldest policy that names a folder decides.

    If none names a folder and one of the policies cannot be read, the log stays where it is.
    """
    specs = [policy.spec for policy in policies_in_force(snapshot)]
    folder = next((spec.extender.log_folder for spec in specs if spec and spec.extender.log_folder), "")
    extender = snapshot.daemon_sets.get(EXTENDER_NAME)
    if not folder and None in specs and extender:
        return ExtenderLog.of_daemon_set(extender.body)
    return ExtenderLog.below(folder)
