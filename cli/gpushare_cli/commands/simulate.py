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
Shows where pods would run, on which card and why, and which pods would wait and why. It creates and changes
nothing.

It places the pods one after the other by gpushare's rules: first the pods of the nodes of --without, then
with --waiting the pods that wait already, then the pods of the files. Of kube-scheduler's own rules it
applies node selectors, required node affinity, taints, unschedulable nodes, and CPU, memory and other
resources. Below the result it names the rules that it did not apply.

With --policy, --unit and --without it places the pods in the cluster as it would be then. The numbers in
pods stay the same: with another unit they mean another amount. It says on which nodes isolation would begin
or end, but cannot know whether a node supports it.

Exit status: 0 all pods fit, 1 some would wait or the policy is refused, 2 it could not look."""


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "-f",
        "--filename",
        action="append",
        default=[],
        metavar="FILE",
        help="manifests of Pods, Deployments, Jobs, StatefulSets and so on: a file, a folder, or - for the"
        " standard input; may be repeated",
    )
    parser.add_argument(
        "--replicas", type=whole_number_of, metavar="N", help="number of pods of each workload in the files"
    )
    parser.add_argument("--waiting", action="store_true", help="first place the pods that wait already")
    parser.add_argument("--policy", metavar="FILE", help="as if this GPUSharePolicy were applied")
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="NODE",
        help="as if this node were drained: place its pods elsewhere; may be repeated",
    )
    parser.add_argument("--unit", metavar="SIZE", help="as if the memory unit had this size, such as 256Mi")


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
    summary="show where pods would run, also with another policy, another unit or without a node",
    description=DESCRIPTION,
    examples=(
        "kubectl gpushare simulate -f deployment.yaml",
        "kubectl gpushare simulate -f pod.yaml --replicas 12",
        "kubectl gpushare simulate --without gpu-2",
        "kubectl gpushare simulate --waiting --unit 256Mi",
        "kubectl gpushare simulate --policy changed-policy.yaml",
        "helm template ./chart | kubectl gpushare simulate -f -",
    ),
    add_arguments=_add_arguments,
    find=_find,
    view=_view,
    can_watch=False,
)
