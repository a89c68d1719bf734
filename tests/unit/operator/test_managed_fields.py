"""Who owns a field of an object."""

import pytest

from gpushare_core.text.json_object import Json
from gpushare_operator.cluster.managed_fields import Path, managers

BODY = {"spec": {"containers": [{"name": "a", "image": "x"}, {"name": "b", "args": ["1"]}], "n": 1}}
FIELDS: list[Json] = [
    {
        "manager": "ours",
        "fieldsV1": {"f:spec": {"f:n": {}, "f:containers": {'k:{"name":"a"}': {"f:image": {}}}}},
    },
    {"manager": "theirs", "fieldsV1": {"f:spec": {"f:containers": {'k:{"name":"b"}': {"f:args": {}}}}}},
    {"manager": "status", "fieldsV1": {"f:status": {}}},
    {"manager": "old"},
]


@pytest.mark.parametrize(
    ("path", "owners"),
    [
        (("spec", "n"), {"ours"}),
        (("spec", "containers", 0, "image"), {"ours"}),
        (("spec", "containers", 1, "args", 0), {"theirs"}),
        (("spec", "containers", 5), set()),
        (("spec", "other"), set()),
    ],
)
def test_the_owners_of_a_field_are_found(path: Path, owners: set[str]) -> None:
    assert managers(FIELDS, BODY, path) - {"old"} == owners
