"""Kubeconfigs merged as kubectl merges them, and the context that is chosen in them.

Source: client-go, ``tools/clientcmd/loader.go`` and ``client_config.go``. The first file that has a
name wins, with all that it says of it; the current context is that of the first file that has one.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpushare_core.kube.credentials import (
    MAX_KUBECONFIG,
    UNREADABLE,
    KubeconfigEntry,
    NoCredentialsError,
    parsed_kubeconfig,
    text_in,
)
from gpushare_core.text.json_object import MAX_REASON

MAX_NAMES = 10
"""Of contexts that an error lists."""


@dataclass(slots=True)
class Kubeconfig:
    """``files``: those that are there, of those that were looked for."""

    looked_for: tuple[Path, ...]
    files: list[Path] = field(default_factory=list)
    current_context: str = ""
    contexts: dict[str, KubeconfigEntry] = field(default_factory=dict)
    clusters: dict[str, KubeconfigEntry] = field(default_factory=dict)
    users: dict[str, KubeconfigEntry] = field(default_factory=dict)

    def add(self, file: Path, content: Mapping[str, Any]) -> None:
        """Raises one of ``UNREADABLE``."""
        self.files.append(file)
        self.current_context = self.current_context or text_in(content, "current-context") or ""
        for kind, entries in (("context", self.contexts), ("cluster", self.clusters), ("user", self.users)):
            for name, entry in _named(content, kind).items():
                entries.setdefault(name, KubeconfigEntry(entry, file))

    def __str__(self) -> str:
        return ", ".join(map(str, self.files or self.looked_for))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenContext:
    """A user at a cluster. All names are empty where none is chosen."""

    context: str
    user_name: str
    cluster: KubeconfigEntry
    user: KubeconfigEntry
    namespace: str

    def __str__(self) -> str:
        return f"user {self.user_name!r} of context {self.context!r}"


def read_kubeconfig(explicit: Path | None, environment: Mapping[str, str]) -> Kubeconfig:
    """Reads the file ``explicit``, else those in ``$KUBECONFIG``, else the one at home. Of the latter those
    that are not there are skipped.

    Raises:
        NoCredentialsError: a file is no kubeconfig or cannot be read, or ``explicit`` is not there.
    """
    files = (explicit,) if explicit else _usual_files(environment)
    config = Kubeconfig(files)
    for file in files:
        try:
            config.add(file, _content(file))
        except FileNotFoundError as error:
            if explicit:
                raise NoCredentialsError(f"there is no kubeconfig {file}") from error
        except OSError as error:
            raise NoCredentialsError(f"cannot read the kubeconfig {file}: {error.strerror}") from error
        except UNREADABLE as error:
            reason = f"{type(error).__name__}: {str(error)[:MAX_REASON]}"
            raise NoCredentialsError(f"{file} is no usable kubeconfig: {reason}") from error
    return config


def _usual_files(environment: Mapping[str, str]) -> tuple[Path, ...]:
    if named := environment.get("KUBECONFIG"):
        return tuple(Path(name) for name in dict.fromkeys(named.split(os.pathsep)) if name)
    return (Path(environment.get("HOME", "/")) / ".kube" / "config",)


def _content(file: Path) -> Mapping[str, Any]:
    with file.open() as opened:
        content = parsed_kubeconfig(opened.read(MAX_KUBECONFIG + 1))
    if not isinstance(content, dict | None):
        raise TypeError("it is no mapping")
    return content or {}


def _named(content: Mapping[str, Any], kind: str) -> dict[str, Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    for entry in content.get(f"{kind}s") or ():
        name, value = entry["name"], entry.get(kind) or {}
        if not isinstance(name, str) or not isinstance(value, dict):
            raise TypeError(f"a {kind} has no name, or is no mapping")
        if name in found:
            raise ValueError(f"two {kind}s are named {name!r}")
        found[name] = value
    return found


def choose_context(
    config: Kubeconfig, *, context: str = "", cluster: str = "", user: str = ""
) -> ChosenContext | None:
    """Returns the context that is named, else the current one, with another cluster or user where they are
    named; None where nothing is named and there is no current context.

    Raises:
        NoCredentialsError: something that is named is not there.
    """
    name = context or config.current_context
    if name and name not in config.contexts:
        raise NoCredentialsError(f"there is no context {name!r} in {config}{_choice(config.contexts)}")
    if not name and not cluster:
        return None
    chosen = config.contexts[name].content if name else {}
    return ChosenContext(
        context=name,
        user_name=user or str(chosen.get("user") or ""),
        cluster=_entry(config, config.clusters, cluster or chosen.get("cluster"), "cluster"),
        user=_entry(config, config.users, user or chosen.get("user"), "user"),
        namespace=str(chosen.get("namespace") or ""),
    )


def no_context(config: Kubeconfig) -> str:
    """Returns why nothing could be chosen, and what to do."""
    if not config.files:
        return f"there is no kubeconfig: looked for {config}; give --kubeconfig, or set $KUBECONFIG"
    choice = _choice(config.contexts) or ", and no context to choose"
    return f"{config} has no current context{choice}; give --context, or kubectl config use-context NAME"


def _entry(
    config: Kubeconfig, entries: Mapping[str, KubeconfigEntry], name: Any, kind: str
) -> KubeconfigEntry:
    if not name and kind == "user":  # nobody in particular, as the server lets them
        return KubeconfigEntry({}, config.files[0])
    if not isinstance(name, str) or name not in entries:
        raise NoCredentialsError(f"there is no {kind} {name!r} in {config}{_choice(entries)}")
    return entries[name]


def _choice(names: Iterable[str]) -> str:
    every = sorted(names)
    more = f" and {len(every) - MAX_NAMES} more" if len(every) > MAX_NAMES else ""
    return f"; there are {', '.join(every[:MAX_NAMES])}{more}" if every else ""
