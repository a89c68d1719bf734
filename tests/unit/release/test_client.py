"""What the client's archive brings, and what krew reads of it."""

import yaml
from release.client import client_distributions, left_out, licences
from release.krew import KrewArchive, krew_manifest

ARCHIVE = KrewArchive(
    uri="https://example.com/files/client.tar.gz",
    sha256="0" * 64,
    system="linux",
    architecture="arm64",
    program="kubectl-gpushare/kubectl-gpushare",
)


def test_it_brings_what_the_client_depends_on_and_no_more() -> None:
    assert {"aiohttp", "multidict", "pydantic", "rich"} <= client_distributions()
    assert client_distributions().isdisjoint({"gpushare", "kopf", "grpcio", "kubernetes-asyncio", "pytest"})
    assert {"kopf", "grpc", "gpushare_plugin", "pytest"} <= {*left_out()}
    assert {*left_out()}.isdisjoint({"aiohttp", "rich", "yaml", "pydantic", "gpushare_core"})


def test_it_brings_the_licences_of_all_that_has_one() -> None:
    named = {path.split("/")[1] for path in licences()}
    assert {"python", "aiohttp", "pyyaml", "rich"} <= named
    assert "kopf" not in named


def test_the_manifest_names_the_one_system_that_was_built() -> None:
    plugin = yaml.safe_load(krew_manifest("1.2.3", ARCHIVE))
    assert plugin["spec"]["version"] == "v1.2.3"
    (platform,) = plugin["spec"]["platforms"]
    assert platform["selector"] == {"matchLabels": {"os": "linux", "arch": "arm64"}}
    assert (platform["uri"], platform["sha256"]) == (ARCHIVE.uri, ARCHIVE.sha256)
    assert platform["bin"] == ARCHIVE.program


def test_the_manifest_is_for_people_too() -> None:
    text = krew_manifest("1.2.3", ARCHIVE)
    assert text.startswith("# kubectl krew install --manifest=gpushare.yaml --archive=client.tar.gz\n")
    assert "caveats: |\n    kubectl completes its commands" in text
