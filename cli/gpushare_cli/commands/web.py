"""``web``: a map of all cards in the browser."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterable

from rich.console import RenderableType

from gpushare_cli.commands.command import Command, Session
from gpushare_cli.decide.web.served_page import ServedPage
from gpushare_cli.output.page import OutputPage

MAX_PORT = 65_535

DESCRIPTION = """\
Serves one page on this machine and prints its address: a map of all cards, the pods that wait (a click
says why), problems, and a table of all that. The page changes nothing, and follows the cluster until Ctrl-C.

It shows what you may see, by the login of your kubeconfig. If you may not list the pods of all namespaces, it
lists those of the context's namespace, or of -n. Only programs on this machine that know the
address can open it: it has a random token, and is different each time. With ?demo at its end it shows 5,000
made-up nodes. Nothing is installed in the cluster.

Exit status: 2 it could not look, or the port is taken; 130 ended by Ctrl-C."""


def _port(text: str) -> int:
    if text.isascii() and text.isdecimal() and len(text) < 6 and int(text) <= MAX_PORT:
        return int(text)
    raise ArgumentTypeError(f"{text!r} is no port from 0 to {MAX_PORT:,}")


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--port", type=_port, default=0, metavar="N", help="default: any that is free")
    parser.add_argument(
        "--rack-label",
        default="",
        metavar="LABEL",
        help="the label of nodes by which the map groups them, such as topology.kubernetes.io/rack; the page"
        " offers others",
    )


async def _find(session: Session, options: Namespace) -> ServedPage:
    from gpushare_cli.gather.web.page_reading import PageReader
    from gpushare_cli.web.gathering import Gathering, Publication
    from gpushare_cli.web.server import serving

    reader = PageReader(
        client=session.client, now=session.now, rack_label=options.rack_label, scope=session.pod_scope()
    )
    publication = Publication()
    gathering = Gathering(
        reader=reader,
        publication=publication,
        server=session.server,
        rack_label=options.rack_label,
        now=session.now,
    )
    session.progress.doing("reading GPUShareNodes and pods")
    try:
        await gathering.first()
        async with serving(session.client, publication, port=options.port, now=session.now) as page:
            report = ServedPage(url=page.guard.url)
            session.announce(report)
            await gathering.run()
    finally:
        await reader.close()


def _view(report: ServedPage, _page: OutputPage) -> Iterable[RenderableType]:
    from gpushare_cli.output.lines import WholeLine

    yield WholeLine(report.url)


WEB_COMMAND = Command(
    name="web",
    summary="show a live map of all cards in the browser",
    description=DESCRIPTION,
    examples=(
        "kubectl gpushare web",
        "kubectl gpushare web --port 8899 --rack-label topology.kubernetes.io/rack",
    ),
    add_arguments=_add_arguments,
    find=_find,
    view=_view,
    is_namespaced=False,
    can_watch=False,
)
