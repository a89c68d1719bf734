"""GPU sharing in the configuration of Volcano's scheduler: what is added, and what is taken out again."""

from typing import Any

import pytest
import yaml
from tests.samples.operator import VOLCANO_CONFIG

from gpushare_operator.backends.volcano.config_edit import Addition, Edit, VolcanoConfigError, disable, enable

ENABLED = """actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang   # together or not at all
- plugins:
  - name: drf
  - name: deviceshare
    arguments:
      deviceshare.GPUSharingEnable: true
  - name: predicates
    arguments:
      predicate.GPUSharingEnable: true
  - name: nodeorder
"""


def with_plugin(text: str, plugin: str) -> str:
    """``plugin`` in place of predicates."""
    return text.replace("  - name: predicates\n", plugin)


OWN_ARGUMENTS = with_plugin(
    VOLCANO_CONFIG,
    "  - name: predicates # as ever\n    arguments:\n      predicate.CacheEnable: true  # fast\n",
)
OWN_DEVICESHARE = with_plugin(
    VOLCANO_CONFIG,
    "  - name: deviceshare\n    arguments:\n      deviceshare.ScheduleWeight: 10\n  - name: predicates\n",
)
FLOW = '{"actions": "allocate", "tiers": [{"plugins": [{"name": "predicates"}, {"name": "drf"}]}]}'


def test_both_switches_are_added_and_nothing_else_changes() -> None:
    assert enable(VOLCANO_CONFIG) == Edit(
        ENABLED, (Addition("deviceshare", "plugin"), Addition("predicates", "arguments"))
    )


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(VOLCANO_CONFIG, id="as installed"),
        pytest.param(OWN_ARGUMENTS, id="arguments of their own"),
        pytest.param(OWN_DEVICESHARE, id="deviceshare for something else"),
        pytest.param(with_plugin(VOLCANO_CONFIG, ""), id="no predicates"),
        pytest.param(VOLCANO_CONFIG.rstrip("\n"), id="no line end"),
        pytest.param(VOLCANO_CONFIG.replace("\n", "\r\n"), id="line ends of Windows"),
        pytest.param("# first\n\n" + VOLCANO_CONFIG + "# last\n", id="comments"),
        pytest.param(FLOW, id="JSON"),
    ],
)
def test_taking_it_out_gives_every_byte_back(text: str) -> None:
    edit = enable(text)
    assert edit.text != text
    assert enable(edit.text) == Edit(edit.text), "done once is done"
    assert disable(edit.text, edit.additions) == text


@pytest.mark.parametrize(
    "arguments", [pytest.param("arguments:", id="null"), pytest.param("arguments: {}", id="empty")]
)
def test_empty_arguments_are_filled_and_emptied(arguments: str) -> None:
    text = with_plugin(VOLCANO_CONFIG, f"  - name: predicates\n    {arguments}\n")
    edit = enable(text)
    assert switches(edit.text) == {"deviceshare.GPUSharingEnable": True, "predicate.GPUSharingEnable": True}
    assert switches(disable(edit.text, edit.additions)) == {}


def switches(text: str) -> dict[str, Any]:
    plugins = [plugin for tier in yaml.safe_load(text)["tiers"] for plugin in tier["plugins"]]
    return {key: value for plugin in plugins for key, value in (plugin.get("arguments") or {}).items()}


def test_what_people_have_switched_on_is_theirs() -> None:
    text = OWN_DEVICESHARE.replace("ScheduleWeight: 10", "GPUSharingEnable: true")
    assert enable(text) == Edit(text)


def test_the_switch_of_old_versions_alone_does_not_do() -> None:
    text = OWN_ARGUMENTS.replace("CacheEnable", "GPUSharingEnable")
    assert enable(text).additions == (Addition("deviceshare", "plugin"),)


def test_what_people_have_added_to_our_plugin_stays() -> None:
    edit = enable(VOLCANO_CONFIG)
    theirs = edit.text.replace(
        "      deviceshare.GPUSharingEnable: true\n",
        "      deviceshare.GPUSharingEnable: true\n      deviceshare.ScheduleWeight: 10 # ours\n",
    )
    assert switches(disable(theirs, edit.additions)) == {"deviceshare.ScheduleWeight": 10}


def test_what_people_have_taken_out_already_is_not_missed() -> None:
    edit = enable(VOLCANO_CONFIG)
    assert disable(VOLCANO_CONFIG, edit.additions) == VOLCANO_CONFIG


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("a: [", "not valid YAML", id="not YAML"),
        pytest.param("", "no list `tiers`", id="empty"),
        pytest.param("tiers: 3", "no list `tiers`", id="no tiers"),
        pytest.param("tiers: [{plugins: []}]", "no plugins", id="no plugins"),
        pytest.param("tiers: [{plugins: [drf]}]", r"tiers\[0\].plugins\[0\] is no plugin", id="no plugin"),
        pytest.param(
            OWN_DEVICESHARE.replace("ScheduleWeight: 10", "VGPUEnable: true"),
            "deviceshare.VGPUEnable: true, and Volcano's scheduler does not start",
            id="vGPU",
        ),
        pytest.param(
            OWN_ARGUMENTS.replace("CacheEnable", "GPUNumberEnable"),
            "predicate.GPUNumberEnable: true",
            id="whole cards",
        ),
        pytest.param(
            OWN_DEVICESHARE.replace("ScheduleWeight: 10", "GPUSharingEnable: false"),
            "somebody has set deviceshare.GPUSharingEnable: false; write true",
            id="off on purpose",
        ),
        pytest.param(
            OWN_DEVICESHARE.replace("ScheduleWeight: 10", "GPUSharingEnable: 'true'"),
            "somebody has set deviceshare.GPUSharingEnable: 'true'",
            id="a word that Volcano does not read",
        ),
        pytest.param(
            "tiers:\n- plugins: &all\n  - name: predicates\n- plugins: *all\n",
            "write it out plainly",
            id="aliases",
        ),
    ],
)
def test_what_cannot_be_edited_says_why(text: str, message: str) -> None:
    with pytest.raises(VolcanoConfigError, match=message):
        enable(text)
