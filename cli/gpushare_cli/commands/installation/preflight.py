"""``preflight``: whether gpushare can be used in a cluster, before and after it is installed there."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable

from rich.console import RenderableType

from gpushare_cli.commands.command import Command, Session
from gpushare_cli.decide.preflight.report import PreflightReport
from gpushare_cli.output.page import OutputPage

DESCRIPTION = """\
Checks whether a cluster fits gpushare, before or after the installation: versions of API server and
kubelets, the distribution and its scheduler backend, kube-scheduler, admission policies, container
runtimes, cgroups, NVIDIA's cards and driver, other device plugins, and your rights. It changes nothing, and
needs no part of gpushare in the cluster.

An answer is ok, a note (something to know, or to do), missing (gpushare cannot work, or you cannot install
it, until that is fixed) or unknown. It asks at most 8 kubelets for what the API server does not know; that
takes the right to get nodes/proxy. It waits 5s for each, or as long as --request-timeout says.

Exit status: 0 nothing is missing; 1 something is; 2 it could not look, or it found nothing missing but
could not read everything."""


def _add_arguments(_parser: ArgumentParser) -> None:
    """It has none of its own."""


async def _find(session: Session, options: Namespace) -> PreflightReport:
    from gpushare_cli.decide.preflight.report import preflight_report
    from gpushare_cli.gather.preflight.kubelets import KUBELET_SECONDS
    from gpushare_cli.gather.preflight.preflight_facts import read_preflight_facts

    seconds = options.request_timeout or KUBELET_SECONDS
    return preflight_report(
        await read_preflight_facts(session.client, session.progress, kubelet_seconds=seconds)
    )


def _view(report: PreflightReport, page: OutputPage) -> Iterable[RenderableType]:
    from gpushare_cli.views.installation.preflight import preflight_view

    return preflight_view(report, page)


PREFLIGHT_COMMAND = Command(
    name="preflight",
    summary="check whether this cluster fits gpushare, what is missing, and what to do",
    description=DESCRIPTION,
    examples=(
        "kubectl gpushare preflight",
        "kubectl gpushare preflight --context production -o wide",
        "kubectl gpushare preflight -o json",
    ),
    add_arguments=_add_arguments,
    find=_find,
    view=_view,
    is_namespaced=False,
)
