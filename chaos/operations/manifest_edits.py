"""What people and upgrades change in the text of kube-scheduler's manifest: pure.

Each edit comes to the same whether our part is in the text or not, so that it can be told what the file would
be without us.
"""

import re
from collections.abc import Callable, Mapping

import msgspec

_FLAG = "    - --leader-elect=true"
_IMAGE = "    image: "


class TextEdit(msgspec.Struct, frozen=True, kw_only=True):
    """``what`` is a key of ``EDITS``; what it sets depends on ``value``."""

    what: str
    value: int

    def apply(self, text: str) -> str:
        """Returns the edited text. An edit of the same kind is replaced."""
        return EDITS[self.what](text, self.value)


def _flag(name: str) -> Callable[[str, int], str]:
    def edit(text: str, value: int) -> str:
        without = re.sub(rf"^    - --{name}=.*\n", "", text, flags=re.M)
        return _behind(without, _FLAG, f"    - --{name}={value}\n")

    return edit


def _comment(text: str, value: int) -> str:
    """A line of its own, behind a flag, and at the end of the file."""
    without = re.sub(r"^ *# by hand .*\n| +# by hand .*$", "", text, flags=re.M)
    return _behind(without, _FLAG, f"    # by hand {value}\n").rstrip("\n") + f"\n# by hand {value}\n"


def _trailing_comment(text: str, value: int) -> str:
    return re.sub(rf"^{_FLAG}.*$", f"{_FLAG}  # chosen {value}", text, flags=re.M)


def _readiness(text: str, value: int) -> str:
    return re.sub(r"(readinessProbe:\n      failureThreshold: )\d+", rf"\g<1>{value}", text)


def _cpu(text: str, value: int) -> str:
    return re.sub(r"cpu: \d+m", f"cpu: {value}m", text)


def _image(text: str, value: int) -> str:
    """Another patch version."""
    return re.sub(rf"^({_IMAGE}\S+:v\d+\.\d+\.)\d+$", rf"\g<1>{value}", text, flags=re.M)


def _variable(text: str, value: int) -> str:
    block = "    env:\n    - name: CHAOS\n      value: "
    if block in text:
        return re.sub(rf"({block})\"\d+\"", rf'\g<1>"{value}"', text)
    return text.replace(_IMAGE, f'{block}"{value}"\n{_IMAGE}', 1)


def _behind(text: str, line: str, added: str) -> str:
    """Inserts behind the first line that begins so."""
    return re.sub(rf"^({re.escape(line)}.*\n)", lambda found: found[1] + added, text, count=1, flags=re.M)


EDITS: Mapping[str, Callable[[str, int], str]] = {
    "verbosity": _flag("v"),
    "client-qps": _flag("kube-api-qps"),
    "comment": _comment,
    "trailing-comment": _trailing_comment,
    "readiness": _readiness,
    "cpu": _cpu,
    "image": _image,
    "variable": _variable,
}
