"""``simulate``: where pods would land."""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable

from rich.console import RenderableType

from gpushare_cli.commands.command import Command, Session
from gpushare_cli.commands.time_argument import whole_number_of
from gpushare_cli.decide.simulation.simulation_report import SimulationReport
from gpushare_cli.output.page import OutputPage

DESCRIPTION = """\
Shows where pods would land, on which card and why, and which of them would stay pending and why. Nothing is
created and nothing is changed.

The pods are placed one after the other by the rules by which gpushare places them. First come the pods of
the nodes of --without, then with --waiting those that wait already, then those of the files, in their order.
Of kube-scheduler's own rules these count: node selectors and required node affinity, taints, unschedulable
nodes, and CPU, memory and other resources. What does not count is said below the result.

With --policy, --unit and --without the pods are placed in the cluster as it would be then. Numbers in pods
stay what they are: with another unit they mean another amount. Of isolation it is said on which nodes it
would begin or end; whether a node can have it is not known before its plugin has looked.

Exit status: 0 all pods fit, 1 some would stay pending or the policy is refused, 2 could not look."""


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "-f",
        "--filename",
        action="append",
        default=[],
        metavar="FILE",
        help="manifests of Pods, Deployments, Jobs, StatefulSets and the like; a file, a folder, or - for the"
        " standard input; may be repeated",
    )
    parser.add_argument(
        "--replicas", type=whole_number_of, metavar="N", help="so many pods of each workload of the files"
    )
    parser.add_argument(
        "--waiting", action="store_true", help="place the pods that wait already, ahead of the files"
    )
    parser.add_argument("--policy", metavar="FILE", help="as if this GPUSharePolicy were applied")
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="NODE",
        help="as if this node were drained: its pods are placed, too; may be repeated",
    )
    parser.add_argument(
        "--unit", metavar="SIZE", help="as if memory was shared in units of this size, such as 256Mi"
    )


async def _find(session: Session, options: Namespace) -> SimulationReport:
    from gpushare_cli.gather.simulation.simulation_run import SimulationOptions, run_simulation

    asked = SimulationOptions(
        files=options.filename,
        replicas=options.replicas,
        with_waiting=options.waiting,
        policy=options.policy or "",
        without=options.without,
        unit=options.unit or "",
    )
    return await run_simulation(
        session.client, asked, namespace=session.namespace, stdin=sys.stdin.buffer, progress=session.progress
    )


def _view(report: SimulationReport, page: OutputPage) -> Iterable[RenderableType]:
    from gpushare_cli.views.simulation import simulation_view

    return simulation_view(report, page)


SIMULATE_COMMAND = Command(
    name="simulate",
    summary="show where pods would land, and what a policy, a unit or a node less would change",
    description=DESCRIPTION,
    examples=(
        "kubectl gpushare simulate -f deployment.yaml",
        "kubectl gpushare simulate -f pod.yaml --replicas 12",
        "kubectl gpushare simulate --without gpu-2",
        "kubectl gpushare simulate --waiting --unit 256Mi",
        "kubectl gpushare simulate --policy changed-policy.yaml",
        "kubectl create deployment web --image=web --dry-run=client -o yaml | kubectl gpushare simulate -f -",
    ),
    add_arguments=_add_arguments,
    find=_find,
    view=_view,
    can_watch=False,
)
