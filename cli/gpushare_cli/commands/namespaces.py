"""``namespaces``: what each namespace holds, beside its ResourceQuota."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable

from rich.console import RenderableType

from gpushare_cli.commands.command import Command, Session
from gpushare_cli.decide.holders.namespaces_report import NamespacesReport, namespaces_report
from gpushare_cli.output.page import OutputPage

DESCRIPTION = """\
Shows for each namespace how many units its pods hold, how much memory that is, how much they use, which pods
wait, and what a ResourceQuota allows. It shows all namespaces; -n chooses one.

To limit a namespace to 32 units, create a quota of the resource that its pods ask for:

  kubectl create quota gpu -n team-a --hard=requests.gpushare.io/memory=32

A quota names requests.RESOURCE. Kubernetes refuses new pods beyond it; existing pods stay. Where nodes use
another dialect the resource has another name: the last lines of the output have the command with the right
names."""


def _add_arguments(_parser: ArgumentParser) -> None:
    """It has none of its own."""


async def _find(session: Session, options: Namespace) -> NamespacesReport:
    import asyncio

    from gpushare_cli.decide.holders.pod_holding import pod_holdings
    from gpushare_cli.gather.pod_holders import read_quotas
    from gpushare_cli.gather.shared_cards import read_shared_nodes

    session.progress.doing("reading GPUShareNodes and ResourceQuotas")
    namespace = "" if session.all_namespaces else options.namespace
    unread: list[str] = []
    shared, quotas = await asyncio.gather(
        read_shared_nodes(session.client, session.pod_scope(namespace)),
        read_quotas(session.client, namespace, unread),
    )
    return namespaces_report(
        pod_holdings(shared.nodes, shared.reading, {}),
        shared.nodes,
        quotas,
        namespace=namespace,
        unread=[*shared.reading.unread, *unread],
        unmeasured=shared.unmeasured,
    )


def _view(report: NamespacesReport, page: OutputPage) -> Iterable[RenderableType]:
    from gpushare_cli.views.holders import namespaces_view

    return namespaces_view(report, page)


NAMESPACES_COMMAND = Command(
    name="namespaces",
    summary="show what each namespace holds and uses, beside its quota",
    description=DESCRIPTION,
    examples=("kubectl gpushare namespaces", "kubectl gpushare namespaces -n team-a -o json"),
    add_arguments=_add_arguments,
    find=_find,
    view=_view,
)
