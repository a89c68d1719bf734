"""``docs/kubernetes-versions.md`` shows the table of ``kubernetes_minors``; the chart has its range."""

import re
from pathlib import Path

import pytest
import yaml

from gpushare_core.kubernetes_minors import (
    FEATURES,
    MINORS,
    OLDEST,
    RANGE,
    FeatureStage,
    FeatureState,
    KubernetesFeature,
    KubernetesMinor,
)
from gpushare_localcluster.build.minors import MINORS as BUILT

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/kubernetes-versions.md").read_text()
EVERY = [feature for features in FEATURES.values() for feature in features]
each_feature = pytest.mark.parametrize("feature", [pytest.param(each, id=each.name) for each in EVERY])

CEL = {
    1.25: "all bytes contains dyn endsWith exists exists_one filter findAll has map matches size startsWith"
    " string sum",
    1.27: "allowed check group name namespace resource serviceAccount",
    1.28: "asInteger compareTo isGreaterThan isInteger isQuantity or orValue quantity sign",
    1.29: "join lastIndexOf replace split substring trim upperAscii",
}
"""Functions that expressions of the product use -> the minor in which API servers had them first."""


def row(feature: KubernetesFeature) -> str:
    states = (str(feature.state_in(minor) or "-") for minor in MINORS)
    words = (feature.used_by, feature.purpose, feature.where_missing or "-")
    return f"| {' | '.join((feature.name, *states, *words))} |"


@each_feature
def test_the_page_has_each_feature_as_the_table_has_it(feature: KubernetesFeature) -> None:
    assert row(feature) in PAGE.splitlines()


def test_the_page_has_no_other_features() -> None:
    names = re.findall(r"^\| ([^|]+?) \| (?:alpha|beta|stable|v1|-)", PAGE, re.MULTILINE)
    assert names == [feature.name for feature in EVERY]


@each_feature
def test_what_is_off_or_missing_somewhere_says_what_is_done_there(feature: KubernetesFeature) -> None:
    is_everywhere = all(map(feature.is_on_in, MINORS))
    assert bool(feature.where_missing) == (not is_everywhere)


@each_feature
def test_states_are_in_order(feature: KubernetesFeature) -> None:
    assert [*feature.states] == sorted(feature.states, key=lambda state: state.since)
    assert len({state.since for state in feature.states}) == len(feature.states)


def test_the_state_of_a_minor_is_the_last_one_before_it() -> None:
    alpha = FeatureState(since=KubernetesMinor(1, 33), stage=FeatureStage.ALPHA, is_on=False)
    beta = FeatureState(since=KubernetesMinor(1, 35), stage=FeatureStage.BETA)
    feature = KubernetesFeature(name="A", used_by="", purpose="", states=(alpha, beta))
    states = [feature.state_in(KubernetesMinor(1, minor)) for minor in (32, 33, 34, 35, 40)]
    assert states == [None, alpha, alpha, beta, beta]
    assert [feature.is_on_in(KubernetesMinor(1, minor)) for minor in (32, 34, 36)] == [False, False, True]


def test_the_newest_that_is_supported_is_the_newest_that_tests_can_run() -> None:
    assert [str(minor) for minor in MINORS] == [minor.name for minor in BUILT]


def test_page_chart_and_installation_name_the_same_range() -> None:
    assert f"Kubernetes {RANGE}" in PAGE
    chart = yaml.safe_load((ROOT / "charts/gpushare/Chart.yaml").read_text())
    assert chart["kubeVersion"] == f">={OLDEST}.0-0"
    assert f" {OLDEST} " in (ROOT / "docs/install.md").read_text()


@pytest.mark.parametrize(
    "path", sorted([*ROOT.glob("manifests/**/*.yaml"), *ROOT.glob("crds/*.yaml")]), ids=str
)
def test_expressions_use_what_the_oldest_server_takes(path: Path) -> None:
    """A server takes new expressions only with what the minor before it has, too, so that it can be rolled
    back. Source: ``DefaultCompatibilityVersion`` of ``k8s.io/apiserver/pkg/cel/environment``."""
    known = {name for since, names in CEL.items() if since < float(str(OLDEST)) for name in names.split()}
    used = {
        name
        for document in yaml.safe_load_all(path.read_text())
        for expression in expressions(document)
        for name in re.findall(r"([A-Za-z_]+)\(", re.sub(r"'(?:\\.|[^'])*'", "''", expression))
    }
    assert used <= known, "look up since which minor the API server has it, and add it to CEL"


def expressions(tree: object) -> list[str]:
    if isinstance(tree, list):
        return [found for each in tree for found in expressions(each)]
    if not isinstance(tree, dict):
        return []
    own = [tree[key] for key in ("expression", "messageExpression", "rule") if isinstance(tree.get(key), str)]
    return own + [found for each in tree.values() for found in expressions(each)]
