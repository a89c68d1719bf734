"""Policies that the CRD admits: generated from its schema, as the API server has it."""

from pathlib import Path
from typing import Any

import yaml
from hypothesis import strategies as st

_CRD = Path(__file__).parents[3] / "crds" / "gpushare.io_gpusharepolicies.yaml"
_TEXTS = st.sampled_from(["n1", "n2", "a", "", "0", "x" * 63, "\N{SNOWMAN}", "a/b", " "]) | st.text(
    max_size=6
)
_PATTERNS = {
    "quantity": st.from_regex(r"\A[0-9]{1,6}([.][0-9]{1,3})?([kMGTP]|[KMGTP]i)?\Z"),
    "memoryUnit": st.from_regex(r"\A[1-9][0-9]{0,7}(M|G|Mi|Gi)\Z"),
    "inventoryPath": st.from_regex(r"\A(/etc/gpushare|/var/lib/gpushare)/[A-Za-z0-9][A-Za-z0-9._-]{0,9}\Z"),
    "cdiKind": st.sampled_from(["nvidia.com/gpu", "a/b"]),
    "runtimeClassName": st.sampled_from(["", "nvidia"]),
    "logFolder": st.sampled_from(["", "/var/log/gpushare"]),
    "extenderPort": st.integers(1024, 29_998) | st.integers(32_768, 65_534),
}
"""By field: what its rules in CEL let pass."""


def _schema() -> Any:
    crd = yaml.safe_load(_CRD.read_text())
    return crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]


def of_schema(schema: Any, name: str = "") -> st.SearchStrategy[Any]:
    """Values that structural schema ``schema`` of the field ``name`` lets pass."""
    if name in _PATTERNS:
        return _PATTERNS[name]
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema.get("type"):
        case "object" if "properties" in schema:
            required = set(schema.get("required", ()))
            fields = {key: of_schema(field, key) for key, field in schema["properties"].items()}
            return st.fixed_dictionaries(
                {key: content for key, content in fields.items() if key in required},
                optional={key: content for key, content in fields.items() if key not in required},
            )
        case "object":
            return st.dictionaries(_TEXTS, of_schema(schema["additionalProperties"]), max_size=3)
        case "array":
            least, most = schema.get("minItems", 0), min(schema.get("maxItems", 3), 3)
            return st.lists(of_schema(schema["items"]), min_size=least, max_size=most)
        case "integer":
            return st.integers(schema.get("minimum", -(2**63)), schema.get("maximum", 2**63 - 1))
        case "boolean":
            return st.booleans()
        case "string" if "quantity of memory" in str(schema.get("x-kubernetes-validations")):
            return _PATTERNS["quantity"]
    return _TEXTS.filter(
        lambda text: schema.get("minLength", 0) <= len(text) <= schema.get("maxLength", 10**9)
    )


def _keeps_to_the_rules(spec: Any) -> bool:
    named = [name for rule in spec["nodes"] for name in rule.get("names", ())]
    return len(named) == len(set(named)) and all(map(_is_admitted, spec["nodes"]))


def _is_admitted(rule: Any) -> bool:
    return bool(rule.get("names")) != bool(rule.get("selector"))


def _ruled(spec: Any) -> Any:
    """Makes of ``spec`` what the rules between fields let pass."""
    for number, rule in enumerate(spec["nodes"]):
        if rule.get("names") and number == 0:
            rule.pop("selector", None)
            rule["names"] = sorted(set(rule["names"]))
        else:
            rule.pop("names", None)
            rule["selector"] = {**rule.get("selector", {}), "matchLabels": {"a": "b"}}
        if rule.get("mode", "Memory") in ("Slices", "Mixed"):
            rule.setdefault("slicesPerCard", 2)
        else:
            rule.pop("slicesPerCard", None)
        devices = rule.get("devices", {})
        if devices.get("source") == "Simulated":
            devices["simulated"] = devices.get("simulated") or [{"count": 2, "memory": "16Gi"}]
        else:
            devices.pop("simulated", None)
        if "health" in devices and "ignoredXids" in devices["health"]:
            devices["health"]["ignoredXids"] = sorted(set(devices["health"]["ignoredXids"]))
    scheduler = spec.get("scheduler", {})
    if scheduler.get("backend") == "Volcano":
        spec["dialect"] = "volcano.sh"
    else:
        scheduler.pop("volcano", None)
    if scheduler.get("backend") in ("External", "Volcano") and scheduler.get("engine") == "Plugin":
        del scheduler["engine"]
    return spec


specs: st.SearchStrategy[Any] = of_schema(_schema()).map(_ruled).filter(_keeps_to_the_rules)
"""The field ``spec`` of a GPUSharePolicy that the API server has admitted."""
