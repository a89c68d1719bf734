"""What people write into containers and annotations by hand, and gpushare does by itself."""

from collections.abc import Iterator

from gpushare_cli.decide.scheduling.written_pod import WrittenContainer, written_pod
from gpushare_cli.decide.why.finding import Finding, decisive, noted
from gpushare_cli.decide.why.situation import PodSituation
from gpushare_cli.wording import listed
from gpushare_core.dialects.dialect import OWN_VARIABLES
from gpushare_core.dialects.table import ANNOTATION_KEYS, RESOURCES
from gpushare_core.dialects.visible_cards import APPLICATION_VARIABLES, hides_cards, is_runtime_variable
from gpushare_core.placement.quantity import read_amount

FIRST_CARD = ("", "0")


def handwritten_variables(situation: PodSituation) -> Iterator[Finding]:
    for container in written_pod(situation.pod).spec.all_containers:
        if _asks(container):
            yield from _of_asking(container)


def _asks(container: WrittenContainer) -> bool:
    return any(read_amount(container.limits.get(name)) > 0 for name in RESOURCES)


def _of_asking(container: WrittenContainer) -> Iterator[Finding]:
    for variable in container.env or ():
        value = variable.value or ""
        shows = is_runtime_variable(variable.name) and (
            variable.value_from or not hides_cards(variable.name, value)
        )
        if shows or variable.name in OWN_VARIABLES:
            yield decisive(
                "SetsCards",
                (
                    f"Container {container.name} sets {variable.name} itself: it would see other cards than"
                    " it is given, so the API server refuses the pod."
                ),
                "Remove it from env: gpushare sets it to the card whose units the container gets.",
            )
        elif variable.name in APPLICATION_VARIABLES and value not in FIRST_CARD:
            yield noted(
                "ChoosesCards",
                (
                    f"Container {container.name} sets {variable.name}={value}. It sees only cards that it is"
                    " given, numbered from 0: its program may find none."
                ),
                f"Remove {variable.name} from env.",
            )


def privileged(situation: PodSituation) -> Iterator[Finding]:
    names = [
        container.name
        for container in written_pod(situation.pod).spec.all_containers
        if _asks(container) and container.security_context and container.security_context.privileged
    ]
    if names:
        yield noted(
            "Privileged",
            f"Container {listed(names)} is privileged: it sees all cards of its node, others' as well.",
            "Remove privileged: true from its securityContext, unless it has to manage the node.",
        )


def handwritten_annotations(situation: PodSituation) -> Iterator[Finding]:
    """Of a pod without a node nobody but people have written them."""
    annotations = written_pod(situation.pod).metadata.annotations or {}
    ours = [key for key in ANNOTATION_KEYS if key in annotations]
    if ours:
        yield noted(
            "HandwrittenAnnotation",
            (f"The pod has the annotation {listed(ours)}. It has no effect: gpushare chooses cards."),
            "Remove it: it comes from a copy of another pod, or was written by hand.",
        )
