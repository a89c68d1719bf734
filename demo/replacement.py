"""Whether a running demo cluster may be replaced: somebody may be working in it."""

from collections.abc import Callable

QUESTION = "The demo cluster is running already. Replace it, with all that is in it? [y/N] "
REFUSAL = """\
The demo cluster is running already, and stays as it is. What to do:
  make demo REPLACE=1                           end it and begin anew
  make stop                                     end it
  export KUBECONFIG=$(make kubeconfig)          go on with it"""

Ask = Callable[[str], str]
"""Puts a question to a person and returns the answer; raises EOFError where nobody answers."""


class NotReplacedError(Exception):
    """The text says what to do, for people."""


def require_consent(ask: Ask | None) -> None:
    """``ask``: None where nobody can be asked.

    Raises:
        NotReplacedError: the cluster has to stay.
    """
    if ask is None or not _agrees(ask):
        raise NotReplacedError(REFUSAL)


def _agrees(ask: Ask) -> bool:
    try:
        return ask(QUESTION).strip().lower() in {"y", "yes"}
    except EOFError:
        return False
