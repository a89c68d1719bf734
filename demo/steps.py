"""The demo's steps, in the order in which a person sees them."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from demo.console import Console
from demo.policy_conditions import follow_conditions
from demo.workload import Placement, placement, pod
from gpushare_core.json_object import Json
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.waiting import wait_until

ROOT = Path(__file__).resolve().parent.parent
POLICY = ROOT / "config" / "samples" / "simulated.yaml"
CONTROL_PLANE = "control-plane-1"
SCHEDULER_MANIFEST = "/etc/kubernetes/manifests/kube-scheduler.yaml"
READY_SECONDS = 180.0


class DemoFailedError(Exception):
    """The product did not do what the demo promises."""


@dataclass(slots=True)
class Demo:
    """One run of the demo on ``cluster``."""

    cluster: LocalCluster
    console: Console

    def play(self) -> None:
        """Installs, applies a policy, places pods. Raises ``DemoFailedError`` when a promise is broken."""
        self.install()
        self.apply_policy()
        self.place_pods()
        self.show_allocations()

    def install(self) -> None:
        self.console.step("Installing from manifests/")
        self.kubectl("apply", "-k", str(ROOT / "manifests"))
        self.kubectl(
            "rollout", "status", "deployment/gpushare-operator", "-n", "gpushare-system", "--timeout=120s"
        )

    def apply_policy(self) -> None:
        self.console.step("Applying a policy: unit 1Gi, 8 simulated cards of 16Gi on every worker")
        self.show(f"apply -f {POLICY.relative_to(ROOT)}", "apply", "-f", str(POLICY))
        self.show_conditions()
        self.show("get gpushare", "get", "gpushare")

    def show_conditions(self) -> None:
        """Prints every condition when it becomes true, until Ready is."""
        shown: set[str] = set()
        for conditions in follow_conditions(self.cluster.kubeconfig, seconds=READY_SECONDS):
            messages = {
                condition["type"]: condition["message"]
                for condition in conditions
                if condition["status"] == "True"
            }
            for kind in sorted(messages.keys() - shown, key=lambda kind: kind == "Ready"):
                self.console.say(f"{kind}: {messages[kind]}")
            shown |= messages.keys()
            if "Ready" in shown:
                return

    def place_pods(self) -> None:
        self.console.step("Pods of 4, 8, 12 and 20 units, one after the other")
        places = {units: self.place(units) for units in (4, 8, 12)}
        self.require(places[4] == places[8], "4 and 8 units share one card", places)
        self.require(places[12] != places[4], "12 units are on another card", places)
        self.show_unschedulable(20)

    def place(self, units: int) -> Placement:
        name = f"units-{units}"
        self.create(pod(name, units))
        self.kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=60s")
        place = placement(self.read("pod", name))
        self.console.say(f"{name}: running on {place.node}, card {', '.join(place.cards)}")
        self.console.command(f"kubectl logs {name}", self.kubectl("logs", name))
        return place

    def show_unschedulable(self, units: int) -> None:
        name = f"units-{units}"
        self.create(pod(name, units))
        self.kubectl("wait", "--for=condition=PodScheduled=False", f"pod/{name}", "--timeout=60s")
        events = ("get", "events", "--field-selector", f"involvedObject.name={name}")
        columns = ("-o", "custom-columns=REASON:.reason,MESSAGE:.message")
        promised = f"insufficient GPU memory in one card: asked {units}, largest free 16"
        message = wait_until(
            f"an event says: {promised}",
            lambda: seen if promised in (seen := self.kubectl(*events, *columns)) else "",
        )
        self.console.command(f"kubectl {' '.join(events)}", message)

    def show_allocations(self) -> None:
        self.console.step("Who has what")
        self.show("get pods -o wide", "get", "pods", "-o", "wide")
        self.show("get gpushare", "get", "gpushare")

    def undo(self, manifest_before: str) -> None:
        """Deletes the policy and shows that everything is as it was, pods running on."""
        self.console.step("Undo: deleting the policy")
        self.show("delete gpusharepolicy default", "delete", "gpusharepolicy", "default", "--timeout=180s")
        self.show("get gpusharenodes", "get", "gpusharenodes")
        self.show("get nodes -l gpushare.io/policy", "get", "nodes", "-l", "gpushare.io/policy")
        self.show("get daemonsets -n gpushare-system", "get", "daemonsets", "-n", "gpushare-system")
        self.show("get pods", "get", "pods")
        after = self.scheduler_manifest()
        self.console.say(f"kube-scheduler.yaml before {manifest_before}\nkube-scheduler.yaml after  {after}")
        self.require(after == manifest_before, "kube-scheduler.yaml is byte for byte as before", after)

    def scheduler_manifest(self) -> str:
        """Returns the SHA-256 of the control plane's kube-scheduler.yaml."""
        content = self.cluster.node_path(CONTROL_PLANE, SCHEDULER_MANIFEST).read_bytes()
        return hashlib.sha256(content).hexdigest()

    def create(self, body: Json) -> None:
        self.cluster.kubectl("apply", "-f", "-", stdin=json.dumps(body))

    def read(self, kind: str, name: str) -> Json:
        body: Json = json.loads(self.kubectl("get", kind, name, "-o", "json"))
        return body

    def kubectl(self, *arguments: str) -> str:
        return self.cluster.kubectl(*arguments)

    def show(self, shown: str, *arguments: str) -> None:
        self.console.command(f"kubectl {shown}", self.kubectl(*arguments))

    def require(self, holds: bool, promise: str, seen: object) -> None:  # noqa: FBT001 - reads like assert
        if not holds:
            raise DemoFailedError(f"promised: {promise}; seen: {seen}")
        self.console.say(f"ok: {promise}")
