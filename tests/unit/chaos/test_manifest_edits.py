"""What people change in a manifest, whether or not our part is in it."""

from pathlib import Path

import pytest
import yaml
from chaos.operations.manifest_edits import EDITS, TextEdit

ROOT = Path(__file__).resolve().parents[3]
PLAIN = (
    (ROOT / "localcluster/internal/node/files/kube-scheduler.yaml").read_text().replace("VERSION", "v1.36.3")
)
CONFIG = "    - --config=/etc/kubernetes/gpushare/scheduler-config.yaml\n"
MOUNT = (
    "    - mountPath: /etc/kubernetes/gpushare/scheduler-config.yaml\n      name: gpushare-scheduler-config\n"
)
OURS = PLAIN.replace("    - kube-scheduler\n", f"    - kube-scheduler\n{CONFIG}").replace(
    "  hostNetwork: true\n", f"{MOUNT}  hostNetwork: true\n"
)


def without_us(text: str) -> str:
    return text.replace(CONFIG, "").replace(MOUNT, "")


@pytest.mark.parametrize("what", EDITS)
def test_an_edit_changes_the_file_and_comes_to_the_same_with_and_without_our_part(what: str) -> None:
    plain, ours = PLAIN, OURS
    for value in (4, 7):
        edit = TextEdit(what=what, value=value)
        plain, ours = edit.apply(plain), edit.apply(ours)
        assert plain != PLAIN
        assert without_us(ours) == plain
        assert yaml.safe_load(ours)["kind"] == "Pod"
    assert plain == TextEdit(what=what, value=7).apply(PLAIN)


def test_edits_do_not_get_into_each_others_way() -> None:
    plain, ours = PLAIN, OURS
    for number in range(3):
        for what in EDITS:
            edit = TextEdit(what=what, value=number + 1)
            plain, ours = edit.apply(plain), edit.apply(ours)
    assert without_us(ours) == plain
    assert yaml.safe_load(plain)["spec"]["containers"][0]["env"] == [{"name": "CHAOS", "value": "3"}]
