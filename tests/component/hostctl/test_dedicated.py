"""gpushare-hostctl as it prepares a pod with a kube-scheduler of our own and its extender."""

import ssl
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509

from gpushare_core.dialects.table import ASKED_RESOURCES, DIALECTS
from gpushare_hostctl.main import main

PROFILE = ("--scheduler-name", "gpushare-scheduler", "--lease-namespace", "gpushare-system")
EXTENDER = (
    "--extender-url",
    "https://127.0.0.1:22766/gpushare",
    "--managed-resource",
    "gpushare.io/memory",
    "--prioritize-verb",
    "prioritize",
)


REPOSITORY = Path(__file__).parents[3]
SAMPLE = REPOSITORY / "scheduler" / "config.yaml"


def prepare(folder: Path, *engine: str) -> int:
    return main(["dedicated", "--folder", str(folder), *PROFILE, *(engine or EXTENDER)])


def written(folder: Path) -> Any:
    return yaml.safe_load((folder / "kube-scheduler.yaml").read_text())


def resource_arguments(option: str, names: Iterable[str]) -> list[str]:
    return [part for name in names for part in (option, name)]


def test_the_configuration_names_one_profile_its_lease_and_the_extender(tmp_path: Path) -> None:
    assert prepare(tmp_path) == 0
    document = written(tmp_path)
    (extender,) = document.pop("extenders")
    assert document == {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {
            "leaderElect": True,
            "resourceName": "gpushare-scheduler",
            "resourceNamespace": "gpushare-system",
        },
        "podMaxBackoffSeconds": 300,
        "profiles": [{"schedulerName": "gpushare-scheduler", "percentageOfNodesToScore": 100}],
    }
    client, authorities = str(tmp_path / "client.pem"), str(tmp_path / "authorities.pem")
    assert extender["tlsConfig"] == {"certFile": client, "keyFile": client, "caFile": authorities}
    assert extender["urlPrefix"] == "https://127.0.0.1:22766/gpushare"
    assert (extender["ignorable"], extender["bindVerb"], extender["enableHTTPS"]) == (False, "bind", True)


def handshake(server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    """Raises ``ssl.SSLError`` when one of the two does not trust the other."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    at_client = client.wrap_bio(to_client, to_server, server_hostname="127.0.0.1")
    at_server = server.wrap_bio(to_server, to_client, server_side=True)
    for side in (at_client, at_server) * 2:
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    at_server.do_handshake()


def contexts(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "server.pem")
    server.verify_mode = ssl.CERT_REQUIRED
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.load_cert_chain(folder / "client.pem")
    for context in (server, client):
        context.load_verify_locations(folder / "authorities.pem")
    return server, client


def test_both_sides_trust_each_other_and_no_pod_of_before(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        assert prepare(tmp_path / name) == 0
    server, client = contexts(tmp_path / "one")
    handshake(server, client)
    _, stranger = contexts(tmp_path / "other")
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(server, stranger)


def test_the_keys_outlast_any_pod_and_are_their_readers_only(tmp_path: Path) -> None:
    assert prepare(tmp_path) == 0
    assert {path.name for path in tmp_path.iterdir()} == {
        "authorities.pem",
        "client.pem",
        "kube-scheduler.yaml",
        "server.pem",
    }
    for path in tmp_path.iterdir():
        assert path.stat().st_mode & 0o777 == 0o600
    in_nine_years = datetime.now(UTC) + timedelta(days=9 * 365)
    for name in ("client.pem", "server.pem", "authorities.pem"):
        certificate = x509.load_pem_x509_certificate((tmp_path / name).read_bytes())
        assert certificate.not_valid_after_utc > in_nine_years


def test_a_container_that_starts_again_makes_all_anew(tmp_path: Path) -> None:
    assert prepare(tmp_path) == 0
    before = (tmp_path / "client.pem").read_bytes()
    assert prepare(tmp_path) == 0
    assert (tmp_path / "client.pem").read_bytes() != before
    handshake(*contexts(tmp_path))


def test_a_folder_that_is_not_there_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert prepare(tmp_path / "missing") == 1
    assert "cannot write what kube-scheduler of this pod needs" in capsys.readouterr().err


PLUGIN = ("--engine", "Plugin", "--managed-resource", "gpushare.io/memory")


def test_with_the_plugin_there_is_the_sample_in_the_schedulers_source_and_nothing_else(
    tmp_path: Path,
) -> None:
    """Where this fails: what pods get in a cluster is not what the tests in ``scheduler/`` run with."""
    managed = [name for dialect in DIALECTS.values() for name in dialect.resources]
    ignored = [name for dialect in DIALECTS.values() for name in dialect.ignored_resources]
    assert set(managed) | set(ignored) == ASKED_RESOURCES
    resources = (
        *resource_arguments("--managed-resource", managed),
        *resource_arguments("--ignored-resource", ignored),
    )
    assert prepare(tmp_path, "--engine", "Plugin", *resources) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["kube-scheduler.yaml"]
    assert (tmp_path / "kube-scheduler.yaml").stat().st_mode & 0o777 == 0o600
    assert written(tmp_path) == yaml.safe_load(SAMPLE.read_text())


def test_the_plugin_is_told_the_weight_the_namespace_and_the_resources_in_use(tmp_path: Path) -> None:
    profile = ("--scheduler-name", "cards", "--lease-namespace", "own")
    assert main(["dedicated", "--folder", str(tmp_path), *profile, *PLUGIN, "--weight", "7"]) == 0
    document = written(tmp_path)
    assert document["leaderElection"] == {
        "leaderElect": True,
        "resourceName": "cards",
        "resourceNamespace": "own",
    }
    (only,) = document["profiles"]
    assert only["schedulerName"] == "cards"
    assert only["plugins"]["multiPoint"]["enabled"] == [{"name": "GPUShare", "weight": 7}]
    arguments = {entry["name"]: entry["args"] for entry in only["pluginConfig"]}
    assert arguments["GPUShare"] == {"extenderLeaseNamespace": "own"}
    assert arguments["NodeResourcesFit"]["ignoredResources"] == ["gpushare.io/memory"]


@pytest.mark.parametrize(
    "engine",
    [
        pytest.param((*PLUGIN, "--extender-url", "https://127.0.0.1:1/x"), id="a plugin calls no extender"),
        pytest.param(("--managed-resource", "gpushare.io/memory"), id="an extender has an address"),
        pytest.param(("--engine", "plugin", *PLUGIN[2:]), id="no such engine"),
    ],
)
def test_arguments_of_another_engine_are_refused(
    tmp_path: Path, engine: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        prepare(tmp_path, *engine)
    assert "--e" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
