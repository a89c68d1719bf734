"""What is said of a pod: causes, and what would help."""

import msgspec


class Finding(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One reason why a pod does not run, or something that people have to know of it."""

    code: str
    """For programs, such as ``CardsFull``."""
    sentence: str
    """For people: whole, without what is in the other fields."""
    nodes: int | None = None
    """For how many nodes it holds; None where it is not about nodes."""
    nearest: str = ""
    """The nearest miss, by node and card."""
    advice: list[str] = msgspec.field(default_factory=list)
    """What to do, a sentence or a command line each; command lines begin with ``kubectl``."""
    is_decisive: bool = False
    """Whether it alone keeps the pod from running."""


class Remedy(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Something that could be done about a pod that waits."""

    code: str
    """For programs, such as ``SmallerRequest``."""
    helps: bool
    """Whether the pod would get its cards then, by the filter that the extender decides with."""
    sentence: str
    units: int | None = None
    """Of a smaller request."""
    nodes: list[str] = msgspec.field(default_factory=list)
    """Where the pod would fit then."""
    pods: list[str] = msgspec.field(default_factory=list)
    """Those that would go, or come first: namespace/name."""
    commands: list[str] = msgspec.field(default_factory=list)
    """Command lines that do it."""


def decisive(code: str, sentence: str, *advice: str, nodes: int | None = None, nearest: str = "") -> Finding:
    """Returns what alone keeps the pod from running."""
    return Finding(
        code=code, sentence=sentence, nodes=nodes, nearest=nearest, advice=[*advice], is_decisive=True
    )


def noted(code: str, sentence: str, *advice: str, nodes: int | None = None, nearest: str = "") -> Finding:
    """Returns what people have to know of the pod, and what does not stop it."""
    return Finding(code=code, sentence=sentence, nodes=nodes, nearest=nearest, advice=[*advice])
