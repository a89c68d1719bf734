"""As whom a request acts: ``--as`` and its like, else what the kubeconfig's user says."""

from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from gpushare_core.kube.credentials import NoCredentialsError

_TOKEN = "!#$&'*+-.^_`|~"  # noqa: S105  the characters of a header's name beside letters and digits


class Impersonation(msgspec.Struct, frozen=True, kw_only=True):
    """Fields as in a kubeconfig. Source: client-go, ``tools/clientcmd/api/v1/types.go``."""

    user: str | None = msgspec.field(name="as", default=None)
    uid: str | None = msgspec.field(name="as-uid", default=None)
    groups: tuple[str, ...] | None = msgspec.field(name="as-groups", default=None)
    extra: dict[str, tuple[str, ...]] | None = msgspec.field(name="as-user-extra", default=None)

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """Raises ``NoCredentialsError`` where a group, a UID or more is given without a user."""
        if not self.user:
            if self.uid or self.groups or self.extra:
                raise NoCredentialsError("--as-group, --as-uid and --as-user-extra need --as")
            return ()
        return (
            ("Impersonate-User", self.user),
            *((("Impersonate-Uid", self.uid),) if self.uid else ()),
            *(("Impersonate-Group", group) for group in self.groups or ()),
            *(
                (f"Impersonate-Extra-{quote(key, safe=_TOKEN)}", value)
                for key, values in (self.extra or {}).items()
                for value in values
            ),
        )


def impersonation_headers(options: Namespace, user: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Raises ``NoCredentialsError``."""
    try:
        stored = msgspec.convert(dict(user), Impersonation)
    except msgspec.ValidationError as error:
        raise NoCredentialsError(f"the kubeconfig says wrongly as whom to act: {error}") from error
    return Impersonation(
        user=options.impersonated or stored.user,
        uid=options.impersonated_uid or stored.uid,
        groups=tuple(options.as_group) or stored.groups,
        extra=_extra(options.as_user_extra) or stored.extra,
    ).headers


def _extra(pairs: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Of each ``KEY=VALUE``; keys may be repeated."""
    extra: dict[str, tuple[str, ...]] = {}
    for pair in pairs:
        key, mark, value = pair.partition("=")
        if not mark or not key:
            raise NoCredentialsError(f"--as-user-extra takes KEY=VALUE, not {pair!r}")
        extra[key] = (*extra.get(key, ()), value)
    return extra
