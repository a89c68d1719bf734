"""Writes the digest of the base image into the Dockerfile, as the registry has it now: `make base`.

Asks the registry itself (its API v2, anonymously), so that neither docker nor another engine is needed. The
line changes only when the digest is known: after any failure the Dockerfile is as it was.
"""

import argparse
import hashlib
import http.client
import json
import re
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple

DOCKERFILE = Path(__file__).resolve().parents[1] / "Dockerfile"
LINE = re.compile(r"^ARG BASE=(\S+)$", re.MULTILINE)
DOCKER_HUB = "registry-1.docker.io"
"""Where the images of docker.io are."""
MANIFESTS = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
"""Media types of an image for several platforms, and of one for a single platform, of OCI and of docker."""
ENCRYPTED_OR_LOCAL = ("https://", "http://localhost:", "http://127.0.0.1:")
BY_HAND = "write the digest down yourself: ARG BASE=image:tag@sha256:..."
TIMEOUT = 30.0
"""Seconds for each response."""
LARGEST = 4 * 2**20
"""Bytes of a response: the registry's own limit for a manifest."""


class RenewError(Exception):
    """The digest cannot be read; the text says why and what to do, for people."""


class Tag(NamedTuple):
    """A tag of an image: ``docker.io/library/python:3.11-slim``."""

    host: str
    repository: str
    tag: str

    def __str__(self) -> str:
        return f"{self.host}/{self.repository}:{self.tag}"

    @property
    def registry(self) -> str:
        """URL of the registry. As with docker, a registry on the loopback address needs no TLS."""
        host = DOCKER_HUB if self.host == "docker.io" else self.host
        is_local = host.partition(":")[0] in {"localhost", "127.0.0.1"}
        return f"{'http' if is_local else 'https'}://{host}"


class Index(NamedTuple):
    """What a tag names."""

    digest: str
    platforms: tuple[str, ...]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "tag", nargs="?", help="another base from now on, such as docker.io/library/python:3.12-slim"
    )
    parser.add_argument("--dockerfile", type=Path, default=DOCKERFILE, help="%(default)s")
    options = parser.parse_args()
    try:
        print(renew(options.dockerfile, options.tag))
    except RenewError as error:
        print(f"{options.dockerfile.name} stays as it is: {error}", file=sys.stderr)
        return 1
    return 0


def renew(dockerfile: Path, tag: str | None) -> str:
    """Rewrites the line of ``dockerfile`` that names the base. ``tag``: None for the one in that line.

    Returns what was done, for people.

    Raises:
        RenewError: nothing was changed.
    """
    text = dockerfile.read_text()
    former = named_base(text)
    wanted = read_tag(tag or former.partition("@")[0])
    index = look_up(wanted)
    base = f"{wanted}@{index.digest}"
    platforms = f"for {', '.join(index.platforms)}"
    if base == former:
        return f"{base} is current, {platforms}"
    dockerfile.write_text(LINE.sub(f"ARG BASE={base}", text))
    return f"{dockerfile.name} names {base} now, {platforms}; it was {former}"


def named_base(text: str) -> str:
    named = LINE.findall(text)
    if len(named) != 1:
        raise RenewError(f"it has to have one line ARG BASE=image:tag, and has {len(named)}")
    return str(named[0])


def read_tag(text: str) -> Tag:
    """Returns the tag in ``text``, read as docker does: without a host it is docker.io's."""
    first, slash, rest = text.partition("/")
    has_host = bool(slash) and (any(mark in first for mark in ".:") or first == "localhost")
    host, path = (first, rest) if has_host else ("docker.io", text)
    named = re.fullmatch(r"([a-z0-9][a-z0-9._/-]*):([\w.-]+)", path)
    if named is None:
        raise RenewError(f"{text!r} is no image with a tag, such as docker.io/library/python:3.11-slim")
    repository, tag = named.groups()
    if host == "docker.io" and "/" not in repository:
        repository = f"library/{repository}"
    return Tag(host, repository, tag)


def look_up(tag: Tag) -> Index:
    """Asks the registry for the digests of a tag.

    Raises:
        RenewError: the registry does not say, or says something impossible.
    """
    url = f"{tag.registry}/v2/{tag.repository}/manifests/{tag.tag}"
    content, told = fetch_manifest(tag, url)
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    if told not in {"", digest}:
        raise RenewError(
            f"what came from {tag.registry} is not what it says it is: {digest}, not {told}; try again"
        )
    try:
        manifest = json.loads(content)
        listed = [manifest["platform"] for manifest in manifest.get("manifests", ())]
        platforms = {
            f"{platform['os']}/{platform['architecture']}"
            for platform in listed
            if platform["os"] != "unknown"
        }
    except (ValueError, AttributeError, KeyError, TypeError) as error:
        raise RenewError(f"what {tag.registry} answers for {tag} is no manifest: {error!r}") from error
    if not platforms:
        raise RenewError(
            f"{tag} is for one platform only, and its digest would be, too; name an image for several ones,"
            " or give yours to each build: make image BASE=..."
        )
    return Index(digest, tuple(sorted(platforms)))


def fetch_manifest(tag: Tag, url: str) -> tuple[bytes, str]:
    """Returns the manifest and its digest, which is empty where the registry does not name it."""
    headers = {"Accept": ", ".join(MANIFESTS)}
    try:
        return fetch(url, headers)
    except urllib.error.HTTPError as error:
        challenge = error.headers.get("WWW-Authenticate", "")
        if error.code != 401 or not challenge.lower().startswith("bearer "):
            raise refusal(tag, error) from error
    try:
        return fetch(url, {**headers, "Authorization": f"Bearer {fetch_token(challenge, tag)}"})
    except urllib.error.HTTPError as error:
        raise refusal(tag, error) from error


def fetch_token(challenge: str, tag: Tag) -> str:
    """Returns an anonymous token from the server that ``challenge`` names.

    Source: https://distribution.github.io/distribution/spec/auth/token/
    """
    words = urllib.request.parse_keqv_list(urllib.request.parse_http_list(challenge.partition(" ")[2]))
    asked = [(key, words[key]) for key in ("service", "scope") if key in words]
    try:
        answer = json.loads(fetch(f"{words['realm']}?{urllib.parse.urlencode(asked)}", {})[0])
        return str(answer.get("token") or answer["access_token"])
    except urllib.error.HTTPError as error:
        raise refusal(tag, error) from error
    except (ValueError, AttributeError, KeyError) as error:
        raise RenewError(
            f"{tag.registry} gives no token to somebody without an account: {error!r}"
        ) from error


def fetch(url: str, headers: dict[str, str]) -> tuple[bytes, str]:
    """Returns the content and the digest in the header.

    Raises:
        HTTPError: the registry refuses.
        RenewError: there was no response in time, or the connection is not encrypted.
    """
    require_privacy(url)
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - see above
    try:
        with urllib.request.build_opener(Redirects).open(request, timeout=TIMEOUT) as answer:
            return answer.read(LARGEST), answer.headers.get("Docker-Content-Digest", "")
    except urllib.error.HTTPError:
        raise
    except (OSError, http.client.HTTPException) as error:
        host = urllib.parse.urlsplit(url).netloc
        raise RenewError(
            f"{host} cannot be reached: {getattr(error, 'reason', error)}; run this where it can (by a proxy:"
            f" https_proxy=...), or {BY_HAND}"
        ) from error


class Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to encrypted or local addresses only."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        require_privacy(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def require_privacy(url: str) -> None:
    if not url.startswith(ENCRYPTED_OR_LOCAL):
        raise RenewError(f"{url} is not encrypted; {BY_HAND}")


def refusal(tag: Tag, error: urllib.error.HTTPError) -> RenewError:
    what_to_do = {
        404: "is the tag right?",
        401: f"it wants an account; {BY_HAND}",
        429: "it was asked too often from here; try again in an hour",
    }.get(error.code, "try again later")
    return RenewError(f"{tag.registry} refuses {tag}: {error.code} {error.reason}; {what_to_do}")


if __name__ == "__main__":
    sys.exit(main())
