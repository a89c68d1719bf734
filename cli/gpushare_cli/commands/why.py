"""``why``: why a pod waits, or runs where it runs."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable

from rich.console import RenderableType

from gpushare_cli.commands.command import Command, Session
from gpushare_cli.decide.why.explanation import PodExplanation
from gpushare_cli.output.page import OutputPage


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "pod",
        nargs="*",
        metavar="POD",
        help="name of a pod, or TYPE/NAME such as pod/web-0, deployment/web or job/train: its newest pod that"
        " waits",
    )
    parser.add_argument(
        "-f",
        "--filename",
        metavar="FILE",
        help="a manifest of a pod, or of an object that creates pods, applied or not; -: standard input",
    )


async def _find(session: Session, options: Namespace) -> PodExplanation:
    from gpushare_cli.decide.why.explain import explain
    from gpushare_cli.gather.why.manifest import read_manifest_situation
    from gpushare_cli.gather.why.pods import PodFinder
    from gpushare_cli.gather.why.situation import read_situation

    finder = PodFinder(
        client=session.client, namespace=session.namespace, all_namespaces=session.all_namespaces
    )
    subject = await finder.find(options.pod, options.filename)
    if subject.exists:
        return explain(await read_situation(session.client, subject.pod, exists=True, now=session.now()))
    return explain(await read_manifest_situation(session.client, subject.pod, now=session.now()))


def _view(report: PodExplanation, page: OutputPage) -> Iterable[RenderableType]:
    from gpushare_cli.views.why import why_view

    return why_view(report, page)


WHY_COMMAND = Command(
    name="why",
    summary="say why a pod waits and what would help, or why it runs where it runs",
    description=(
        "Says why a pod has no card: each reason, for how many nodes it holds, which card\n"
        "comes closest, and what would help. It tries each remedy with the rules by which\n"
        "gpushare places pods. For a running pod it says where the pod runs, on which\n"
        "card, beside which pods, and what limits it to its share. It changes nothing.\n\n"
        "Exit status: 0 the pod runs, or would get its cards now; 1 it does not;\n"
        "2 it could not find out."
    ),
    examples=(
        "kubectl gpushare why trainer-7f9c",
        "kubectl gpushare why -n ml deployment/notebook",
        "kubectl gpushare why -f pod.yaml",
    ),
    add_arguments=_add_arguments,
    find=_find,
    view=_view,
)
