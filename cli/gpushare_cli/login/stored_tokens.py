"""Writes new tokens into the kubeconfig from which the old ones came, as kubectl does."""

import logging
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gpushare_core.kube.credentials import UNREADABLE, KubeconfigEntry, parsed_kubeconfig
from gpushare_core.text.printable import printable

_log = logging.getLogger(__name__)


def store_tokens(user: KubeconfigEntry, tokens: Mapping[str, str]) -> None:
    """Replaces ``tokens``, by name, in the configuration of the user's auth-provider: in the file, where
    every other byte stays, and in ``user``.

    Where that cannot be, says so: this command goes on with the tokens that it has.
    """
    from gpushare_core.text.yaml_edit import YamlEditError

    file = user.file.resolve()
    try:
        with _locked(file):
            text = file.read_text()
            _replace(file, _edited(text, user, tokens))
        user.content["auth-provider"].setdefault("config", {}).update(tokens)
    except (OSError, YamlEditError, *UNREADABLE) as error:
        _log.warning(
            "cannot write renewed tokens into %s, kubectl may want a new login: %s",
            printable(str(file)),
            printable(str(error)),
        )


def _edited(text: str, user: KubeconfigEntry, tokens: Mapping[str, str]) -> str:
    from gpushare_core.text import yaml_edit

    path = ("users", _index(parsed_kubeconfig(text), user), "user", "auth-provider", "config")
    old = user.content["auth-provider"].get("config") or {}
    for name, token in tokens.items():
        if name not in old:
            text = yaml_edit.insert_entry(text, (*path, name), value=token)
        elif old[name] != token:
            text = yaml_edit.replace_scalar(text, (*path, name), value=token)
    return text


def _index(config: Any, user: KubeconfigEntry) -> int:
    """Raises ``ValueError`` where somebody has changed the user meanwhile."""
    return [entry.get("user") for entry in config["users"]].index(user.content)


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    """By the same file as kubectl. Raises ``FileExistsError``."""
    lock = file.with_name(f"{file.name}.lock")
    os.close(os.open(lock, os.O_CREAT | os.O_EXCL, 0))
    try:
        yield
    finally:
        lock.unlink()


def _replace(file: Path, text: str) -> None:
    """The file stays its owner's, whoever writes: root would lock somebody out of a cluster."""
    before = file.stat()
    with tempfile.NamedTemporaryFile("w", dir=file.parent, delete=False) as new:
        try:
            new.write(text)
            os.fchown(new.fileno(), before.st_uid, before.st_gid)
            os.fchmod(new.fileno(), before.st_mode & 0o777)
            new.flush()
            Path(new.name).replace(file)
        except BaseException:
            Path(new.name).unlink()
            raise
