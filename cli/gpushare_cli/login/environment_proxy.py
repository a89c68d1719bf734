"""The proxy that ``HTTPS_PROXY``, ``HTTP_PROXY`` and ``NO_PROXY`` name.

Source: golang.org/x/net/http/httpproxy, by which kubectl finds its own.
"""

import ipaddress
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import SplitResult, urlsplit

from gpushare_core.kube.credentials import checked_proxy


def proxy_of_environment(server: str, environment: Mapping[str, str]) -> str | None:
    """Returns the URL of the proxy for ``server``, or None. A proxy without a scheme is one of HTTP.

    Raises ``ValueError`` for one that is not of HTTP.
    """
    url = urlsplit(server)
    name = f"{url.scheme}_proxy"
    proxy = environment.get(name) or environment.get(name.upper())
    if not proxy or _is_direct(url, environment.get("no_proxy") or environment.get("NO_PROXY") or ""):
        return None
    return checked_proxy(proxy if "://" in proxy else f"http://{proxy}")


def _is_direct(url: SplitResult, no_proxy: str) -> bool:
    host = (url.hostname or "").lower()
    port = url.port or (443 if url.scheme == "https" else 80)
    address = None
    with suppress(ValueError):
        address = ipaddress.ip_address(host)
    if host == "localhost" or (address and address.is_loopback):
        return True
    entries = [entry.strip().lower() for entry in no_proxy.split(",")]
    return any(_matches(entry, host, port, address) for entry in entries if entry)


def _matches(
    entry: str, host: str, port: int, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None
) -> bool:
    if entry == "*":
        return True
    if address:
        with suppress(ValueError):
            return address in ipaddress.ip_network(entry, strict=False)
    name, _, wanted = entry.partition(":") if entry.count(":") == 1 else (entry, "", "")
    if wanted and wanted != str(port):
        return False
    if address:
        return host == name
    domain = name.removeprefix("*").lstrip(".")
    is_domain_itself = host == domain and name == domain
    return is_domain_itself or host.endswith(f".{domain}")
