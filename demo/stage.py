"""What a scenario does on the cluster, and what it shows."""

import json
from dataclasses import dataclass

from demo.command_line import answer_of
from demo.console import Console
from demo.workload import Placement, placement, pod
from gpushare_core.text.json_object import Json
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.waiting import wait_until

WORKER = "gpu-1"
"""The node of scenarios that need only one."""


class DemoFailedError(Exception):
    """The product did not do what the demo promises."""


@dataclass(slots=True)
class Stage:
    """Runs commands on ``cluster``, and shows them on ``console``."""

    cluster: LocalCluster
    console: Console

    def step(self, text: str) -> None:
        self.console.step(text)

    def say(self, text: str) -> None:
        self.console.say(text)

    def place(self, name: str, resource: str, amount: int) -> Placement:
        """Creates a pod and waits until it runs; shows its cards."""
        self.create(pod(name, resource, amount))
        return self.wait_for(name)

    def wait_for(self, name: str) -> Placement:
        """Waits until the pod runs; shows its cards."""
        self.kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=240s")
        place = placement(self.read("pod", name))
        cards = "card" if len(place.cards) == 1 else "cards"
        self.say(f"{name}: running on {place.node}, {cards} {', '.join(place.cards)}")
        self.console.command(f"kubectl logs {name}", self.kubectl("logs", name))
        return place

    def refuse(self, name: str, resource: str, amount: int, *, reason: str) -> None:
        """Creates a pod that fits nowhere and waits until an event says ``reason``."""
        self.create(pod(name, resource, amount))
        self.kubectl("wait", "--for=condition=PodScheduled=False", f"pod/{name}", "--timeout=240s")
        events = ("get", "events", "--field-selector", f"involvedObject.name={name}")
        columns = ("-o", "custom-columns=REASON:.reason,MESSAGE:.message")
        message = wait_until(
            f"an event says: {reason}",
            lambda: seen if reason in (seen := self.kubectl(*events, *columns)) else "",
        )
        lines = dict.fromkeys(message.splitlines())  # every attempt says the same
        self.console.command(f"kubectl {' '.join(events)}", "\n".join(lines))
        self.ask("why", name)

    def end(self, name: str) -> None:
        """Deletes the pod and waits until it is gone."""
        self.show(f"delete pod {name}", "delete", "pod", name, "--timeout=240s")

    def wait_for_node(self, kind: str, wanted: dict[str, int]) -> None:
        """Waits until ``kind`` (capacity or allocatable) of the worker equals ``wanted``."""

        def seen() -> dict[str, int]:
            present = self.read("node", WORKER)["status"][kind]
            return {name: int(present.get(name, 0)) for name in wanted}

        wait_until(
            f"{kind} of {WORKER} is {wanted}", lambda: seen() == wanted, explain=lambda: f"It is {seen()}."
        )

    def show_books(self) -> None:
        """Shows which pod has how much, once the policy's totals agree with its nodes, a moment later."""
        wait_until("the policy counts what its nodes do", self._is_summed_up)
        self.show("get gpushare", "get", "gpushare")

    def show_holders(self) -> None:
        """Shows the cards of the nodes that pods have come to, once the books agree."""
        wait_until("the policy counts what its nodes do", self._is_summed_up)
        pods = json.loads(self.kubectl("get", "pods", "-o", "json"))["items"]
        self.ask("inspect", *sorted({node for pod in pods if (node := pod["spec"].get("nodeName"))}))

    def _is_summed_up(self) -> bool:
        of_nodes, of_policies = (self._allocated(kind) for kind in ("gpusharenodes", "gpusharepolicies"))
        return of_nodes == of_policies

    def _allocated(self, kind: str) -> int:
        """Returns the units of pods, by the status of all objects of ``kind``."""
        items = json.loads(self.kubectl("get", kind, "-o", "json"))["items"]
        return sum(item.get("status", {}).get("units", {}).get("allocated", 0) for item in items)

    def show(self, shown: str, *arguments: str) -> None:
        self.console.command(f"kubectl {shown}", self.kubectl(*arguments))

    def ask(self, *arguments: str) -> None:
        """Shows what ``kubectl gpushare`` says."""
        self.console.command(f"kubectl gpushare {' '.join(arguments)}", answer_of(self.cluster, *arguments))

    def create(self, body: Json) -> None:
        self.cluster.kubectl("apply", "-f", "-", stdin=json.dumps(body))

    def read(self, kind: str, name: str) -> Json:
        body: Json = json.loads(self.kubectl("get", kind, name, "-o", "json"))
        return body

    def kubectl(self, *arguments: str) -> str:
        return self.cluster.kubectl(*arguments)

    def require(self, holds: bool, promise: str, seen: object) -> None:  # noqa: FBT001 - reads like assert
        if not holds:
            raise DemoFailedError(f"promised: {promise}; seen: {seen}")
        self.say(f"ok: {promise}")
