"""Texts that others leave in objects: Volcano's configuration, what hostctl said, numbers in annotations."""

import dataclasses
import json
from collections.abc import Callable

import yaml
from hypothesis import assume, example, given
from hypothesis import strategies as st
from tests.fuzz.fuzzing import fuzzes
from tests.fuzz.strategies.odd_json import encoded, mutated, odd_texts
from tests.fuzz.strategies.yaml_text import damaged_yaml
from tests.samples.operator import VOLCANO_CONFIG, job, job_pod

from gpushare_operator.backends.kube_scheduler.hostctl_job import HostctlCommand
from gpushare_operator.backends.kube_scheduler.job_history import Attempt
from gpushare_operator.backends.volcano.config_edit import VolcanoConfigError, disable, enable
from gpushare_operator.cluster.labels import read_ports

FOREIGN_EDITS: dict[str, Callable[[str], str]] = {
    "nothing": lambda text: text,
    "another action": lambda text: text.replace("allocate", "allocate, preempt"),
    "a comment at the head": lambda text: "# ours\n" + text,
    "a comment at the end": lambda text: text.rstrip("\r\n") + "\n# end\n",
    "windows' line ends": lambda text: text.replace("\r\n", "\n").replace("\n", "\r\n"),
    "another plugin": lambda text: text.replace("- name: priority", "- name: conformance"),
    "no line end at the end": lambda text: text.rstrip("\r\n"),
}
"""None touches a line of ours."""

_ARGUMENTS = (
    "",
    "",
    "    arguments:\n",
    "    arguments: {}\n",
    "    arguments:\n      a.b: 1 # one\n",
    "    arguments: {a.b: 1}\n",
)


@st.composite
def configurations(draw: st.DrawFn) -> str:
    """Volcano's, as people write it."""
    names = draw(st.permutations(["priority", "gang", "drf", "predicates", "proportion", "nodeorder"]))
    names = draw(
        st.sampled_from([names, [*names, "deviceshare"], [name for name in names if name != "predicates"]])
    )
    plugins = [f"  - name: {name}\n{draw(st.sampled_from(_ARGUMENTS))}" for name in names]
    text = 'actions: "enqueue, allocate, backfill"\ntiers:\n- plugins:\n' + "".join(plugins[:3])
    text += draw(st.sampled_from(["", "# second\n"])) + "- plugins:\n" + "".join(plugins[3:])
    text = draw(st.sampled_from([text, text.rstrip("\n"), text.replace("\n", "\r\n")]))
    return draw(st.sampled_from([text, text, yaml.safe_dump(yaml.safe_load(text)), VOLCANO_CONFIG]))


def require_same(back: str, text: str) -> None:
    """Byte for byte, but that of a null that is written out an empty mapping may be left."""
    if "null" in text or "~" in text:
        assert json.dumps(yaml.safe_load(back)).replace("{}", "null") == json.dumps(
            yaml.safe_load(text)
        ).replace("{}", "null")
    else:
        assert back == text


@fuzzes(enable, disable, few=30)
@given(configurations(), st.sampled_from(sorted(FOREIGN_EDITS)))
def test_what_was_switched_on_comes_out_again_byte_for_byte(text: str, name: str) -> None:
    try:
        edit = enable(text)
    except VolcanoConfigError as error:
        assert str(error)
        assume(condition=False)
        raise
    assert enable(edit.text).additions == ()
    foreign = FOREIGN_EDITS[name]
    require_same(disable(foreign(edit.text), edit.additions), foreign(text))


@fuzzes(enable, disable, few=30)
@given(damaged_yaml(configurations()))
@example(VOLCANO_CONFIG + "x: !!int ''")
@example(VOLCANO_CONFIG + "x: &a [*a]")
def test_a_damaged_configuration_is_edited_exactly_or_refused(text: str) -> None:
    try:
        edit = enable(text)
        back = disable(edit.text, edit.additions)
    except VolcanoConfigError as error:
        assert str(error)
    else:
        require_same(back, text)


REPORT = {"result": "Failed", "message": "x", "inputs": "y", "renewAfter": "2026-11-22T10:00:00+00:00"}


@fuzzes(Attempt.report)
@given(encoded(mutated(REPORT)) | st.binary(max_size=9), st.integers(-1, 5))
@example(b"[" * 100_000, 3)
@example(b'{"renewAfter":' + b"9" * 5000 + b"}", 3)
def test_what_hostctl_said_is_read_as_far_as_it_can_be(content: bytes, code: int) -> None:
    run = job(HostctlCommand.INSTALL)
    pod = dataclasses.replace(job_pod(run, code), termination=content.decode("utf-8", "replace"))
    attempt = Attempt(run, pod)
    assert isinstance(attempt.report, dict)
    assert attempt.rolled_back_inputs is not None
    assert attempt.renew_after is None or attempt.renew_after.tzinfo


@fuzzes(read_ports)
@given(odd_texts | st.just("32766," + "9" * 5000) | st.just(",".join(["1"] * 9)))
def test_ports_are_ports_or_none(text: str) -> None:
    assert all(0 <= port <= 10**18 for port in read_ports(text))
