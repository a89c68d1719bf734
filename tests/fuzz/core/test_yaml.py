"""YAML that people, tools and strangers wrote is read within bounds, edited exactly, or refused."""

import time
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.fuzz.fuzzing import fuzzes
from tests.fuzz.strategies.yaml_text import BOMBS, TAGS, damaged_yaml
from tests.samples.hostctl import KUBEADM
from tests.samples.operator import VOLCANO_CONFIG

from gpushare_core.kube.credentials import Credentials, NoCredentialsError, from_kubeconfig
from gpushare_core.text import yaml_edit
from gpushare_core.text.yaml_edit import YamlEditError, YamlPath

SECONDS = 10.0
"""Of processor time on a slow machine; without bounds it would be hours."""
PATHS: tuple[YamlPath, ...] = (
    (),
    ("spec", "containers", 0, "command"),
    ("spec", "volumes"),
    ("tiers", 1, "plugins"),
    ("tiers", 1, "plugins", 1, "arguments"),
    ("metadata",),
    ("nowhere",),
)
texts = damaged_yaml(st.sampled_from([KUBEADM.decode(), VOLCANO_CONFIG, "", "a: [b]\n"])) | st.text(
    max_size=30
)


@fuzzes(yaml_edit.documents, yaml_edit.first_document)
@given(texts)
@example("a: !!int ''")
@example("a: !!bool perhaps")
@example("a: !!timestamp never")
@example("a: \x07")
@example("a: &a [*a]")
def test_a_text_is_read_or_refused_with_a_reason(text: str) -> None:
    try:
        yaml_edit.documents(text)
    except YamlEditError as error:
        assert str(error)


@pytest.mark.parametrize("tag", TAGS)
def test_a_tag_that_fits_no_value_is_refused_with_a_reason(tag: str) -> None:
    for text in (f"a: {tag}", tag, f"- {tag}\n- x"):
        try:
            yaml_edit.first_document(text)
        except YamlEditError as error:
            assert str(error)


@pytest.mark.parametrize("name", BOMBS)
def test_what_is_long_or_grows_is_refused_at_once(name: str) -> None:
    begun = time.thread_time()
    with pytest.raises(YamlEditError):
        yaml_edit.documents(BOMBS[name])
    assert time.thread_time() - begun < SECONDS


EDITS = (
    lambda text, path: yaml_edit.insert_item(text, (*path, "x"), value="y"),
    lambda text, path: yaml_edit.insert_item(text, path, value={"a": "b"}, index=0),
    lambda text, path: yaml_edit.insert_entry(text, (*path, "x"), value={"y": True}),
    lambda text, path: yaml_edit.remove_entry(text, (*path, "name")),
    lambda text, path: yaml_edit.remove_item(text, path, index=0),
    lambda text, path: yaml_edit.replace_scalar(text, path, value="y"),
)


@fuzzes(
    yaml_edit.insert_item,
    yaml_edit.insert_entry,
    yaml_edit.remove_entry,
    yaml_edit.remove_item,
    yaml_edit.replace_scalar,
)
@given(texts, st.sampled_from(PATHS), st.sampled_from(range(len(EDITS))))
def test_an_edit_is_made_or_refused_with_a_reason(text: str, path: YamlPath, edit: int) -> None:
    try:
        EDITS[edit](text, path)
    except YamlEditError as error:
        assert str(error)


KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: "https://127.0.0.1:6443", insecure-skip-tls-verify: true}}]
users: [{name: a, user: {token: t}}]
"""


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "kubeconfig"


@fuzzes(from_kubeconfig)
@given(damaged_yaml(st.just(KUBECONFIG)), st.binary(max_size=2))
@example(KUBECONFIG.replace("token: t", "token: 5"), b"")
@example(KUBECONFIG.replace("user: {token: t}", "user: [token]"), b"")
@example(KUBECONFIG.replace('server: "https://127.0.0.1:6443"', "server: 5"), b"")
@example("current-context: !!int ''", b"")
@example("[" * 5000, b"")
@example(KUBECONFIG, b"\xff")
@example(KUBECONFIG.replace("token: t", 'client-certificate-data: "!", client-key-data: AAAA'), b"")
@example(KUBECONFIG.replace("token: t", "client-certificate-data: /w==, client-key-data: /w=="), b"")
@example(KUBECONFIG.replace("token: t", "client-certificate: /gone, client-key: 5"), b"")
@example(KUBECONFIG.replace("insecure-skip-tls-verify: true", "certificate-authority-data: /w=="), b"")
@example(KUBECONFIG.replace("insecure-skip-tls-verify: true", "certificate-authority: /dev/null"), b"")
@example(KUBECONFIG.replace("insecure-skip-tls-verify: true", "certificate-authority: [a]"), b"")
def test_a_kubeconfig_is_usable_or_refused_with_a_reason(kubeconfig: Path, text: str, end: bytes) -> None:
    kubeconfig.write_bytes(text.encode("utf-8", "surrogatepass") + end)
    try:
        credentials = from_kubeconfig(kubeconfig)
    except NoCredentialsError as error:
        assert str(kubeconfig) in str(error)
    else:
        _require_texts(credentials)


def _require_texts(credentials: Credentials) -> None:
    texts = (
        credentials.server,
        credentials.token() or "",
        credentials.server_name or "",
        credentials.proxy or "",
    )
    assert all(isinstance(text, str) for text in texts)
