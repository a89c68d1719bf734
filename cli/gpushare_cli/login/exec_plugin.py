"""Exec plugins: programs that print credentials, such as those of EKS, GKE and AKS.

Source: client-go, ``plugin/pkg/client/auth/exec``, and the API ``client.authentication.k8s.io``.
kubernetes-asyncio runs them as well, but knows neither ``interactiveMode`` nor ``provideClusterInfo`` nor an
end to waiting.
"""

import base64
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from gpushare_cli.login.plugin_process import PluginOutput, PluginTerminal, TooMuchOutputError, run_plugin
from gpushare_cli.login.renewal import LoginCredential
from gpushare_core.api.timestamps import read_rfc3339
from gpushare_core.kube.credentials import KubeconfigEntry, NoCredentialsError, is_insecure, text_in
from gpushare_core.text.json_object import UNREADABLE_JSON, Json
from gpushare_core.text.printable import printable

API = "client.authentication.k8s.io"
VERSIONS = (f"{API}/v1", f"{API}/v1beta1")
EXECUTION_INFO = "KUBERNETES_EXEC_INFO"
CLUSTER_EXTENSION = f"{API}/exec"
"""Name of the extension of a cluster that its plugins are given."""
MAX_HINT = 1000
"""Bytes of ``installHint`` that are shown."""
MAX_WORDS = 4
"""Of a command that are shown: options may be secrets."""


class InteractiveMode(StrEnum):
    NEVER = "Never"
    IF_AVAILABLE = "IfAvailable"
    ALWAYS = "Always"


class _Variable(msgspec.Struct):
    name: str
    value: str = ""


class ExecConfig(msgspec.Struct, rename="camel", kw_only=True):
    """``user.exec`` in a kubeconfig."""

    api_version: str = ""
    command: str = ""
    args: list[str] | None = None
    env: list[_Variable] | None = None
    interactive_mode: InteractiveMode | None = None
    provide_cluster_info: bool = False
    install_hint: str | None = None


class _Status(msgspec.Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: str | None = None


class ExecCredential(msgspec.Struct, rename="camel"):
    """What a plugin prints."""

    api_version: str = ""
    kind: str = ""
    status: _Status | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecPlugin:
    """``cluster``: what the plugin is told of it, where the kubeconfig wants that."""

    config: ExecConfig
    command: str
    cluster: Json | None
    environment: Mapping[str, str]
    """Of this process."""
    terminal: PluginTerminal
    seconds: float
    """Until it is ended."""

    def __str__(self) -> str:
        """The command as people know it, fit for a terminal."""
        words = [self.command]
        for argument in self.config.args or ():
            if argument.startswith("-") or len(words) == MAX_WORDS:
                words.append("...")
                break
            words.append(argument)
        return f"`{printable(' '.join(words))}`"

    async def credential(self) -> LoginCredential:
        """Raises ``NoCredentialsError``."""
        program, is_interactive = self._program(), self._is_interactive()
        variables = {
            **self.environment,
            **{variable.name: variable.value for variable in self.config.env or ()},
            EXECUTION_INFO: self._information(is_interactive=is_interactive),
        }
        try:
            output = await run_plugin(
                [program, *(self.config.args or ())],
                variables,
                name=str(self),
                terminal=self.terminal,
                is_interactive=is_interactive,
                seconds=self.seconds,
            )
        except TimeoutError as error:
            raise NoCredentialsError(self._timed_out()) from error
        except TooMuchOutputError as error:
            raise NoCredentialsError(f"{self} printed {error}: that is no ExecCredential") from error
        except (OSError, ValueError) as error:
            raise NoCredentialsError(
                f"cannot run {self}, by which the kubeconfig logs in: {error}{self._hint()}"
            ) from error
        return self._read(output)

    def _program(self) -> str:
        """As in Go, a name is not looked for in the folder where somebody happens to be: a program that lies
        there is anybody's."""
        found = shutil.which(self.command, path=self.environment.get("PATH", ""))
        if found is None or not Path(found).is_absolute():
            raise NoCredentialsError(
                f"the kubeconfig logs in by {self}, and there is no such program{self._hint()}"
            )
        return found

    def _hint(self) -> str:
        hint = printable(" ".join((self.config.install_hint or "").split()), max_bytes=MAX_HINT)
        return f". {hint}" if hint else "; install it, or see that it is in PATH"

    def _is_interactive(self) -> bool:
        """Raises ``NoCredentialsError`` where the plugin needs a terminal."""
        mode = self.config.interactive_mode or InteractiveMode.IF_AVAILABLE
        if mode is InteractiveMode.ALWAYS and not self.terminal.has_input:
            raise NoCredentialsError(
                f"{self}, by which the kubeconfig logs in, asks for something (interactiveMode: Always), and"
                " the standard input is no terminal; run the command at a terminal, without a pipe into it"
            )
        return mode is not InteractiveMode.NEVER and self.terminal.has_input

    def _information(self, *, is_interactive: bool) -> str:
        cluster = {"cluster": self.cluster} if self.config.provide_cluster_info else {}
        spec = {**cluster, "interactive": is_interactive}
        information = {"kind": "ExecCredential", "apiVersion": self.config.api_version, "spec": spec}
        return msgspec.json.encode(information).decode()

    def _timed_out(self) -> str:
        alone = "" if self.terminal.is_attended else ", and nobody is at a terminal to answer it"
        return (
            f"{self}, by which the kubeconfig logs in, did not end within {self.seconds:g} s{alone}; it was"
            " stopped. Run it by hand to see what it waits for"
        )

    def _read(self, output: PluginOutput) -> LoginCredential:
        if output.status:
            raise NoCredentialsError(self._failed(output))
        try:
            credential = read_credential(output.content, self.config.api_version)
        except ValueError as error:
            raise NoCredentialsError(f"{self}, by which the kubeconfig logs in, {error}") from error
        return credential

    def _failed(self, output: PluginOutput) -> str:
        how = f"ended with status {output.status}" if output.status > 0 else "was killed"
        if output.errors is None:
            return f"{self}, by which the kubeconfig logs in, {how}; what it printed is above"
        printed = f"printed: {output.errors}" if output.errors else "printed no reason"
        return f"{self}, by which the kubeconfig logs in, {how} and {printed}"


def read_credential(content: bytes, version: str) -> LoginCredential:
    """Returns the credentials that a plugin of ``version`` has printed.

    Raises ``ValueError`` for what is none; the text says what the plugin did, and nothing of ``content``,
    which may be a secret.
    """
    try:
        printed = msgspec.json.decode(content, type=ExecCredential)
    except UNREADABLE_JSON as error:
        raise ValueError(f"printed {len(content)} bytes that are no ExecCredential: {error}") from error
    if printed.kind != "ExecCredential" or printed.api_version != version:
        raise ValueError(
            f"printed {printable(printed.kind, max_bytes=80)!r} of"
            f" {printable(printed.api_version, max_bytes=80)!r} where the kubeconfig wants an ExecCredential"
            f" of {version!r}"
        )
    return _credential(printed.status or _Status())


def _credential(status: _Status) -> LoginCredential:
    certificate, key = status.client_certificate_data.encode(), status.client_key_data.encode()
    if bool(certificate) != bool(key):
        raise ValueError("printed a client certificate or its key, and not both")
    if not status.token and not certificate:
        raise ValueError("printed neither a token nor a client certificate")
    expires = read_rfc3339(status.expiration_timestamp) if status.expiration_timestamp else None
    if status.expiration_timestamp and not expires:
        raise ValueError("printed an expirationTimestamp that is no time")
    return LoginCredential(token=status.token, certificate=certificate, key=key, expires=expires)


def exec_plugin(
    user: KubeconfigEntry,
    cluster: KubeconfigEntry,
    *,
    environment: Mapping[str, str],
    terminal: PluginTerminal,
    seconds: float,
) -> ExecPlugin:
    """Raises ``NoCredentialsError`` for a plugin that kubectl does not run either."""
    try:
        config = msgspec.convert(user.content["exec"], ExecConfig)
        told = _told_of_cluster(cluster) if config.provide_cluster_info else None
    except (msgspec.ValidationError, OSError, TypeError, ValueError) as error:
        raise NoCredentialsError(f"{user.file} has an exec plugin that cannot be used: {error}") from error
    if problem := _problem(config):
        raise NoCredentialsError(f"{user.file} has an exec plugin {problem}")
    return ExecPlugin(
        config=config,
        command=_command(config.command, user),
        cluster=told,
        environment=environment,
        terminal=terminal,
        seconds=seconds,
    )


def _problem(config: ExecConfig) -> str:
    if not config.command:
        return "without a command"
    if config.api_version not in VERSIONS:
        return (
            f"of apiVersion {config.api_version!r}, which Kubernetes has no more or not yet; it has"
            f" {' and '.join(VERSIONS)}: let your provider's command write the kubeconfig again"
        )
    if config.interactive_mode is None and config.api_version == VERSIONS[0]:
        return f"without interactiveMode, which {config.api_version} requires: Never, IfAvailable or Always"
    return ""


def _command(name: str, user: KubeconfigEntry) -> str:
    """A path is one from the kubeconfig's folder on; a name is looked for in PATH."""
    return str(user.folder.absolute() / name) if os.sep in name else name


def _told_of_cluster(cluster: KubeconfigEntry) -> Json:
    """Raises ``OSError``, or ``TypeError`` for a field of another type."""
    content = cluster.content
    authority = text_in(content, "certificate-authority-data")
    if not authority and (file := text_in(content, "certificate-authority")):
        authority = base64.b64encode((cluster.folder / file).read_bytes()).decode()
    told = {
        "server": text_in(content, "server"),
        "tls-server-name": text_in(content, "tls-server-name"),
        "insecure-skip-tls-verify": is_insecure(content),
        "certificate-authority-data": authority,
        "proxy-url": text_in(content, "proxy-url"),
        "disable-compression": bool(content.get("disable-compression")) or None,
        "config": _extension(content.get("extensions") or ()),
    }
    return {name: value for name, value in told.items() if value}


def _extension(extensions: Sequence[Any]) -> Any:
    found = (
        entry for entry in extensions if isinstance(entry, dict) and entry.get("name") == CLUSTER_EXTENSION
    )
    return next(found, {}).get("extension")
