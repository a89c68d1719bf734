"""Which requests are answered. Pure.

Any page that somebody looks at in the same browser can send requests to 127.0.0.1, and a name that resolves
to it (DNS rebinding) makes them look as if they came from the same site. So a request has to know the token,
name exactly our address, and come from our page or from the address bar.
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

ADDRESS = "127.0.0.1"
HTTP_PORT = 80
ALLOWED_SITES = ("same-origin", "none")
"""Of ``Sec-Fetch-Site``; none: typed, or opened by another program."""
SECURITY_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self';"
        " base-uri 'none'; form-action 'none'; frame-ancestors 'none';"
        " require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Server": "gpushare",
}
"""Of every response."""


@dataclass(frozen=True, slots=True)
class RequestRefusal:
    status: HTTPStatus
    text: str


@dataclass(frozen=True, slots=True)
class RequestGuard:
    token: str
    port: int

    @property
    def host(self) -> str:
        """As browsers name it: without the port that HTTP has anyway."""
        return ADDRESS if self.port == HTTP_PORT else f"{ADDRESS}:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self.host}/{self.token}/"

    def refusal(self, method: str, path: str, headers: Mapping[str, str]) -> RequestRefusal | None:
        """Returns None for a request that is answered. ``headers``: of any case, as HTTP has them."""
        if headers.get("Host", "") != self.host:
            return RequestRefusal(HTTPStatus.MISDIRECTED_REQUEST, f"this page is at http://{self.host} alone")
        if headers.get("Origin", f"http://{self.host}") != f"http://{self.host}":
            return RequestRefusal(HTTPStatus.FORBIDDEN, "another site asks")
        if headers.get("Sec-Fetch-Site", "none") not in ALLOWED_SITES:
            return RequestRefusal(HTTPStatus.FORBIDDEN, "another site asks")
        if not self.knows_token(path):
            return RequestRefusal(
                HTTPStatus.NOT_FOUND, "open the address that kubectl gpushare web has printed"
            )
        if method != "GET":
            return RequestRefusal(HTTPStatus.METHOD_NOT_ALLOWED, "this page changes nothing: GET alone")
        return None

    def knows_token(self, path: str) -> bool:
        """Takes as long for every token."""
        given = path.removeprefix("/").partition("/")[0]
        return hmac.compare_digest(given.encode(), self.token.encode())
