"""The demo's steps, in the order in which a person sees them."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from demo.policy_conditions import follow_conditions
from demo.scenarios.scenario import Scenario
from demo.stage import Stage
from gpushare_core.process.version import VERSION
from gpushare_localcluster.scheduler import add_scheduler

ROOT = Path(__file__).resolve().parent.parent
MANIFESTS = ROOT / "config" / "local-cluster"
"""``manifests/`` with one operator."""
CONTROL_PLANE = "control-plane-1"
SCHEDULER_MANIFEST = "/etc/kubernetes/manifests/kube-scheduler.yaml"
READY_SECONDS = 480.0


@dataclass(slots=True)
class Demo:
    """One run of ``scenario``."""

    stage: Stage
    scenario: Scenario

    def play(self) -> None:
        """Installs, applies a policy, places pods. Raises ``DemoFailedError`` when a promise is broken."""
        self.install()
        self.apply_policy()
        self.scenario.play(self.stage)
        self.show_allocations()

    def install(self) -> None:
        add_scheduler(self.stage.cluster, VERSION)
        self.stage.step("Installing from manifests/")
        self.stage.kubectl("apply", "-k", str(MANIFESTS))
        self.stage.kubectl(
            "rollout", "status", "deployment/gpushare-operator", "-n", "gpushare-system", "--timeout=240s"
        )

    def apply_policy(self) -> None:
        stage, policy = self.stage, self.scenario.policy
        stage.step(f"Applying a policy, mode {self.scenario.mode}: {self.scenario.policy_text}")
        stage.show(f"apply -f {policy.relative_to(ROOT)}", "apply", "-f", str(policy))
        self.show_conditions()
        stage.show_books()
        stage.ask("status")

    def show_conditions(self) -> None:
        """Prints every condition when it becomes true, until Ready is."""
        shown: set[str] = set()
        for conditions in follow_conditions(self.stage.cluster.kubeconfig, seconds=READY_SECONDS):
            messages = {
                condition["type"]: condition["message"]
                for condition in conditions
                if condition["status"] == "True"
            }
            for kind in sorted(messages.keys() - shown, key=lambda kind: kind == "Ready"):
                self.stage.say(f"{kind}: {messages[kind]}")
            shown |= messages.keys()
            if "Ready" in shown:
                return

    def show_allocations(self) -> None:
        self.stage.step("Who has what")
        self.stage.show_holders()

    def undo(self, manifest_before: str) -> None:
        """Deletes the policy and shows that everything is as it was, pods running on."""
        show = self.stage.show
        self.stage.step("Undo: deleting the policy")
        self.stage.ask("undo", "--dry-run")
        show("delete gpusharepolicy default", "delete", "gpusharepolicy", "default", "--timeout=240s")
        show("get gpusharenodes", "get", "gpusharenodes")
        show("get nodes -l gpushare.io/policy", "get", "nodes", "-l", "gpushare.io/policy")
        show("get daemonsets -n gpushare-system", "get", "daemonsets", "-n", "gpushare-system")
        show("get pods", "get", "pods")
        after = self.scheduler_manifest()
        self.stage.say(f"kube-scheduler.yaml before {manifest_before}\nkube-scheduler.yaml after  {after}")
        promise = "kube-scheduler.yaml is byte for byte as before"
        self.stage.require(after == manifest_before, promise, after)

    def scheduler_manifest(self) -> str:
        """Returns the SHA-256 of the control plane's kube-scheduler.yaml."""
        content = self.stage.cluster.node_path(CONTROL_PLANE, SCHEDULER_MANIFEST).read_bytes()
        return hashlib.sha256(content).hexdigest()
