"""Where the extender's log is kept on its host, and what lets it write there, which is not root."""

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
    """``folder`` is the extender's own on its host; empty: nowhere."""

    folder: str = ""

    @classmethod
    def below(cls, folder: str) -> "ExtenderLog":
        """Returns the folder of its own below ``folder``, in which others may keep logs, too: whoever may
        write to a folder may have others who write there follow links of his."""
        return cls(f"{folder}/{OWN_FOLDER}" if folder else "")

    @classmethod
    def of_daemon_set(cls, body: Json) -> "ExtenderLog":
        """Returns what is in force."""
        pod = body.get("spec", {}).get("template", {}).get("spec", {})
        volumes = (volume for volume in pod.get("volumes", ()) if volume.get("name") == LOGS)
        return cls(next((volume.get("hostPath", {}).get("path", "") for volume in volumes), ""))

    @property
    def arguments(self) -> list[str]:
        return ["--log-folder", LOGS_MOUNT] if self.folder else []

    @property
    def volumes(self) -> list[Json]:
        """The kubelet makes a folder that is not there, for root."""
        return [host_path(LOGS, self.folder, kind="DirectoryOrCreate")] if self.folder else []

    @property
    def mounts(self) -> list[Json]:
        return [mount(LOGS, LOGS_MOUNT)] if self.folder else []

    def pod_fields(self, installation: Installation) -> Json:
        """Returns the init container that gives the folder to the extender's group: root without any
        capability may do that, because the pod's group is the extender's."""
        if not self.folder:
            return {}
        return {"initContainers": [_preparation(installation)]}


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
