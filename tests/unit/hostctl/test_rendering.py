"""What people put where who connect kube-scheduler by themselves."""

from dataclasses import replace
from typing import Any

import pytest
import yaml
from tests.samples.hostctl import CONFIG_HEAD, EXTENDER

from gpushare_hostctl.decide.scheduler.rendering import Question, render
from gpushare_hostctl.decide.scheduler.scheduler_flags import SchedulerFlags
from gpushare_hostctl.errors import NeedsPersonError

HTTPS = replace(EXTENDER, url="https://127.0.0.1:22766/gpushare", managed_resources=("gpushare.io/memory",))
QUESTION = Question(
    extender=HTTPS,
    folder="/etc/kubernetes/gpushare",
    target="/etc/kubernetes/it.yaml",
    flags=SchedulerFlags(("--kubeconfig=/etc/kubernetes/scheduler.conf", "--leader-elect=true")),
)
TLS = {
    "certFile": "/etc/kubernetes/gpushare/keys/client.pem",
    "keyFile": "/etc/kubernetes/gpushare/keys/client.pem",
    "caFile": "/etc/kubernetes/gpushare/extender/authorities.pem",
}


def configured(**changes: Any) -> Any:
    return yaml.safe_load(render(replace(QUESTION, **changes)).configuration)


def mounted(**changes: Any) -> list[str]:
    text = render(replace(QUESTION, **changes)).instructions
    block = text[text.index("     volumeMounts:") : text.index("\n5. " if "\n6. " in text else "\n4. ")]
    named = yaml.safe_load(block)
    paths = [volume["hostPath"]["path"] for volume in named["volumes"]]
    assert [mount["mountPath"] for mount in named["volumeMounts"]] == paths
    assert all(mount["readOnly"] for mount in named["volumeMounts"])
    return paths


def test_the_configuration_of_a_scheduler_that_runs_by_flags() -> None:
    assert configured() == {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": "/etc/kubernetes/scheduler.conf"},
        "extenders": [replace(HTTPS, tls=None).to_mapping() | {"enableHTTPS": True, "tlsConfig": TLS}],
    }


def test_a_configuration_that_is_there_keeps_every_byte() -> None:
    text = CONFIG_HEAD + "percentageOfNodesToScore: 100  # all\n"
    merged = render(replace(QUESTION, config=text.encode())).configuration.decode()
    assert merged.startswith(text)
    assert yaml.safe_load(merged)["extenders"][0]["tlsConfig"] == TLS


def test_nothing_in_it_says_that_hostctl_would_remove_it() -> None:
    assert b"restore" not in render(QUESTION).configuration


def test_without_tls_there_are_no_keys() -> None:
    plain = replace(HTTPS, url="http://127.0.0.1:22766/gpushare")
    assert "tlsConfig" not in configured(extender=plain)["extenders"][0]
    assert "hostctl keys" not in render(replace(QUESTION, extender=plain)).instructions
    assert mounted(extender=plain) == ["/etc/kubernetes/it.yaml"]


def test_the_instructions_name_every_file_and_flag() -> None:
    text = render(QUESTION).instructions
    assert "gpushare-hostctl keys --root /" in text
    assert "the flag --config=/etc/kubernetes/it.yaml" in text
    assert "kube-scheduler ignores these, and the file has their values: --kubeconfig." in text
    assert mounted() == ["/etc/kubernetes/it.yaml", TLS["certFile"], TLS["caFile"]]


def test_one_that_has_a_configuration_needs_no_flag() -> None:
    assert "--config=" not in render(replace(QUESTION, config=CONFIG_HEAD.encode())).instructions


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"version": "1.24.3"}, "it has to be 1.25 or newer", id="too old"),
        pytest.param({"version": "new"}, "no version of Kubernetes; write it as 1.36", id="no version"),
        pytest.param(
            {"flags": SchedulerFlags(("--config=/etc/a.yaml",))},
            "has --config=/etc/a.yaml: give a copy of that file as --config",
            id="a configuration that was not given",
        ),
        pytest.param({"config": b"kind: Pod\n"}, "is not a KubeSchedulerConfiguration", id="something else"),
    ],
)
def test_what_cannot_be_rendered_says_why(changes: Any, message: str) -> None:
    with pytest.raises(NeedsPersonError, match=message):
        render(replace(QUESTION, **changes))


@pytest.mark.parametrize("version", ["1.25", "v1.36.3", "1.40"])
def test_versions_that_read_it(version: str) -> None:
    assert configured(version=version) == configured()
