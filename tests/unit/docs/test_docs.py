"""What the documents name is there: files, headings, targets, commands' files, fields, values."""

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpushare_core.api.policy import GPUSharePolicy
from gpushare_core.text.json_object import Json

ROOT = Path(__file__).parents[3]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("localcluster/*.md")], key=str)
SAMPLES = sorted(ROOT.glob("config/samples/*.yaml"))
CRD: Json = yaml.safe_load((ROOT / "crds/gpushare.io_gpusharepolicies.yaml").read_text())
SPEC: Json = CRD["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
VALUES: Json = yaml.safe_load((ROOT / "charts/gpushare/values.yaml").read_text())

each_document = pytest.mark.parametrize(
    "document", [pytest.param(path, id=str(path.relative_to(ROOT))) for path in DOCUMENTS]
)


def blocks(text: str, language: str) -> list[str]:
    """Returns the fenced blocks in ``language``, without the indentation of a list."""
    found = re.findall(rf"^ *```{language}\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(block) for block in found]


def headings(document: Path) -> set[str]:
    """Returns the anchors of a document as GitHub makes them."""
    prose = re.sub(r"^ *```.*?^ *```", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)
    titles = (line.lstrip("#").strip().lower() for line in prose.splitlines() if line.startswith("#"))
    return {re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in titles}


def exists(link: str, document: Path) -> bool:
    name, _, anchor = link.partition("#")
    target = document.parent / name if name else document
    return target.exists() and (not anchor or anchor in headings(target))


@each_document
def test_links_lead_somewhere(document: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", document.read_text())
    assert [link for link in links if "://" not in link and not exists(link, document)] == []


@each_document
def test_commands_name_files_and_targets_that_are_there(document: Path) -> None:
    shell = "\n".join(blocks(document.read_text(), "sh"))
    files = re.findall(r"\s-[fk] ((?:manifests|config|charts|crds)\S*)", shell)
    files += re.findall(r"helm (?:install|upgrade) gpushare (\S+)", shell)
    assert [name for name in files if not (ROOT / name).exists()] == []
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"^make ([a-z-]+)", shell, re.MULTILINE)) <= targets


@each_document
def test_paths_in_the_text_are_there(document: Path) -> None:
    folders = (
        "charts|config|crds|demo|docs|hostctl/gpushare|image|localcluster|manifests|operator|plugin|tests"
    )
    paths = re.findall(rf"`((?:{folders})/[\w./-]*)`", document.read_text())
    assert [path for path in paths if not (ROOT / path).exists()] == []


@each_document
def test_values_given_to_helm_are_values_of_the_chart(document: Path) -> None:
    given = re.findall(r"--set[= ]([\w.]+)=", document.read_text())
    assert set(given) <= {path for path, _ in values(VALUES)}


def values(tree: Json, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            yield from values(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def test_every_value_of_the_chart_is_in_its_table() -> None:
    document = (ROOT / "docs/install.md").read_text()
    assert [path for path, _ in values(VALUES) if f"| `{path}` |" not in document] == []


def fields(schema: Json, prefix: str = "") -> Iterator[str]:
    """Yields the fields below a schema that have none below themselves."""
    for name, field in schema.get("properties", {}).items():
        nested = field.get("items", field)
        if nested.get("properties"):
            yield from fields(nested, f"{prefix}{name}{'[]' if 'items' in field else ''}.")
        else:
            yield prefix + name


def test_every_field_of_a_policy_is_in_its_table() -> None:
    """But what Kubernetes itself says of label selectors."""
    rows = [line for line in (ROOT / "docs/policy.md").read_text().splitlines() if line.startswith("| `")]
    own = [field for field in fields(SPEC) if "matchExpressions[]" not in field]
    assert [field for field in own if not any(names(row, field) for row in rows)] == []


def names(row: str, field: str) -> bool:
    """Whether a row is about the field, or about the object that it is in and speaks of it."""
    _, named, rest = row.split("|", 2)
    folder, _, name = field.rpartition(".")
    return f"`{field}`" in named or (f"`{folder}`" in named and name in re.findall(r"\w+", rest))


def unknown(body: Any, schema: Json, path: str) -> Iterator[str]:
    """Yields what a schema has no field for, and values that it does not list."""
    if isinstance(body, list):
        for part in body:
            yield from unknown(part, schema.get("items", {}), f"{path}[]")
    elif isinstance(body, dict) and "properties" in schema:
        for name, value in body.items():
            if name in schema["properties"]:
                yield from unknown(value, schema["properties"][name], f"{path}.{name}")
            else:
                yield f"{path}.{name}"
    elif "enum" in schema and body not in schema["enum"]:
        yield f"{path}: {body}"


def policies(text: str) -> Iterator[Json]:
    """Yields the specs, whole ones and parts, in a YAML text."""
    bodies = [body for body in yaml.safe_load_all(text) if isinstance(body, dict)]
    for body in bodies:
        if body.get("kind", "GPUSharePolicy") == "GPUSharePolicy" and "spec" in body:
            yield body["spec"]
        elif set(body) <= set(SPEC["properties"]):
            yield body


@each_document
def test_policies_in_the_text_have_fields_that_exist(document: Path) -> None:
    specs = [spec for block in blocks(document.read_text(), "yaml") for spec in policies(block)]
    assert [problem for spec in specs for problem in unknown(spec, SPEC, "spec")] == []


@pytest.mark.parametrize("sample", [pytest.param(path, id=path.stem) for path in SAMPLES])
def test_samples_are_policies_as_the_operator_reads_them(sample: Path) -> None:
    bodies = [body for body in yaml.safe_load_all(sample.read_text()) if body["kind"] == "GPUSharePolicy"]
    assert [problem for body in bodies for problem in unknown(body["spec"], SPEC, "spec")] == []
    for body in bodies:
        GPUSharePolicy.model_validate(body)


def test_the_samples_of_real_cards_name_nodes_by_labels_that_workers_do_not_have_by_themselves() -> None:
    """The policy that the README has people apply must not reach every worker of their cluster."""
    (spec,) = policies((ROOT / "config/samples/nvidia.yaml").read_text())
    assert all(rule["selector"]["matchLabels"] for rule in spec["nodes"])
    assert {rule["devices"]["source"] for rule in spec["nodes"]} == {"NVML"}


def test_the_readme_has_people_apply_a_sample_of_real_cards() -> None:
    shell = "\n".join(blocks((ROOT / "README.md").read_text(), "sh"))
    assert re.findall(r"apply -f (\S+)", shell) == ["config/samples/nvidia.yaml", "config/samples/pod.yaml"]
