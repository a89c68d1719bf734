"""What may be chosen for the programs that the operator starts."""

import pytest

from gpushare_operator.desired.programs import Programs, UnusableProgramsError, read_programs


def test_nothing_has_to_be_chosen() -> None:
    assert read_programs("{}") == Programs()


def test_numbers_are_quantities_too() -> None:
    read = read_programs(
        '{"plugin": {"resources": {"requests": {"cpu": 1, "memory": "64Mi"}, "limits": {}}}}'
    )
    assert read.plugin.resources is not None
    assert read.plugin.resources.to_json() == {"requests": {"cpu": "1", "memory": "64Mi"}}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("plugin", "plugin: Invalid JSON", id="no JSON"),
        pytest.param('{"pulgin": {}}', "pulgin: Extra inputs", id="no such program"),
        pytest.param('{"plugin": {"limits": {}}}', "plugin.limits: Extra inputs", id="no such field"),
        pytest.param(
            '{"plugin": {"resources": {"limits": {"memory": "much"}}}}',
            "plugin.resources.limits.memory: String should match",
            id="no quantity",
        ),
        pytest.param(
            '{"extender": {"resources": {"limits": {"nvidia.com/gpu": 1}}}}',
            "extender.resources.limits.nvidia.com/gpu: Extra inputs",
            id="a device",
        ),
    ],
)
def test_what_cannot_be_used_is_named_with_an_example(text: str, problem: str) -> None:
    with pytest.raises(UnusableProgramsError) as raised:
        read_programs(text)
    assert problem in str(raised.value)
    assert '"requests": {"memory": "64Mi"}' in str(raised.value)
