"""Kubeconfigs are merged, and contexts chosen, as by kubectl."""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpushare_cli.login.kubeconfig import Kubeconfig, choose_context, no_context, read_kubeconfig
from gpushare_core.kube.credentials import NoCredentialsError


def config(name: str, *, current: str = "", namespace: str = "") -> dict[str, Any]:
    """A context, a cluster and a user of one name."""
    return {
        "current-context": current,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": namespace}}],
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}"}}],
        "users": [{"name": name, "user": {"token": name}}],
    }


def merged(folder: Path, *configs: object) -> Kubeconfig:
    """Of files in this order in ``$KUBECONFIG``; None for one that is not there."""
    files = [folder / str(number) / "config" for number in range(len(configs))]
    for file, content in zip(files, configs, strict=True):
        file.parent.mkdir(exist_ok=True)
        if content is not None:
            file.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return read_kubeconfig(None, {"KUBECONFIG": os.pathsep.join(map(str, files)), "HOME": str(folder)})


def test_the_first_file_that_has_a_name_wins_with_all_that_it_says(tmp_path: Path) -> None:
    second = config("a", namespace="second")
    second["users"][0]["user"]["tokenFile"] = "never"
    chosen = choose_context(merged(tmp_path, config("a", current="a"), second))
    assert chosen is not None
    assert (chosen.namespace, chosen.user.content) == ("", {"token": "a"})


def test_the_current_context_is_that_of_the_first_file_that_has_one(tmp_path: Path) -> None:
    config_of_three = merged(tmp_path, config("a"), config("b", current="b"), config("c", current="c"))
    assert config_of_three.current_context == "b"
    assert [*config_of_three.contexts] == ["a", "b", "c"]


def test_a_context_may_name_a_cluster_of_one_file_and_a_user_of_another(tmp_path: Path) -> None:
    first = {"current-context": "x", "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}]}
    second = {"clusters": config("c")["clusters"]}
    third = {"users": config("u")["users"]}
    chosen = choose_context(merged(tmp_path, first, second, third))
    assert chosen is not None
    assert (chosen.cluster.folder, chosen.user.folder) == (tmp_path / "1", tmp_path / "2")


def test_a_file_without_an_end_is_refused() -> None:
    with pytest.raises(NoCredentialsError, match="longer than 1024 KiB"):
        read_kubeconfig(Path("/dev/zero"), {})


def test_files_that_are_not_there_are_skipped(tmp_path: Path) -> None:
    found = merged(tmp_path, None, config("a", current="a"), None, "")
    assert found.files == [tmp_path / "1" / "config", tmp_path / "3" / "config"]


def test_without_the_variable_it_is_the_file_at_home(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").write_text(yaml.safe_dump(config("a", current="a")))
    assert read_kubeconfig(None, {"HOME": str(tmp_path), "KUBECONFIG": ""}).current_context == "a"


def test_an_argument_replaces_the_variable(tmp_path: Path) -> None:
    explicit = tmp_path / "explicit"
    explicit.write_text(yaml.safe_dump(config("a")))
    assert read_kubeconfig(explicit, {"KUBECONFIG": "/no/such"}).files == [explicit]
    with pytest.raises(NoCredentialsError, match="there is no kubeconfig /no/such"):
        read_kubeconfig(Path("/no/such"), {})


def test_context_cluster_and_user_may_be_chosen(tmp_path: Path) -> None:
    found = merged(tmp_path, config("a", current="a", namespace="n"), config("b"))
    chosen = choose_context(found, context="b", user="a")
    assert chosen is not None
    assert chosen.cluster.content == {"server": "https://b"}
    assert (chosen.context, chosen.user_name, chosen.namespace) == ("b", "a", "")
    alone = choose_context(merged(tmp_path, config("a")), cluster="a")
    assert alone is not None
    assert (alone.context, alone.user.content) == ("", {})


def test_nothing_is_chosen_where_nothing_is_current(tmp_path: Path) -> None:
    found = merged(tmp_path, config("b"), config("a"))
    assert choose_context(found) is None
    assert "has no current context; there are a, b; give --context" in no_context(found)
    nowhere = read_kubeconfig(None, {"HOME": "/nowhere"})
    assert no_context(nowhere).startswith("there is no kubeconfig: looked for /nowhere/.kube/config; give")


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ({"context": "z"}, "there is no context 'z' in .*; there are a, half, unknown"),
        ({"cluster": "z"}, "there is no cluster 'z' in .*; there are a$"),
        ({"user": "z"}, "there is no user 'z' in .*; there are a$"),
        ({"context": "half"}, "there is no cluster None"),
        ({"context": "unknown"}, "there is no user 'z'"),
    ],
)
def test_a_name_that_is_not_there_is_said_with_those_that_are(
    tmp_path: Path, choice: dict[str, str], said: str
) -> None:
    content = config("a", current="a")
    content["contexts"] += [
        {"name": "half", "context": {"user": "a"}},
        {"name": "unknown", "context": {"cluster": "a", "user": "z"}},
    ]
    with pytest.raises(NoCredentialsError, match=said):
        choose_context(merged(tmp_path, content), **choice)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("a: [", id="no YAML"),
        pytest.param("[]", id="a list"),
        pytest.param("contexts: 5", id="contexts no list"),
        pytest.param("contexts: [{context: {}}]", id="no name"),
        pytest.param("contexts: [{name: 5, context: {}}]", id="a number for a name"),
        pytest.param("contexts: [{name: a, context: [a]}]", id="a context no mapping"),
        pytest.param("contexts: [{name: a}, {name: a}]", id="two of a name"),
        pytest.param("current-context: [a]", id="a current context no text"),
    ],
)
def test_a_file_that_is_none_is_named(tmp_path: Path, content: str) -> None:
    with pytest.raises(NoCredentialsError, match="0/config is no usable kubeconfig"):
        merged(tmp_path, content, config("a", current="a"))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoCredentialsError, match=f"cannot read the kubeconfig {tmp_path}: Is a directory"):
        read_kubeconfig(tmp_path, {})
