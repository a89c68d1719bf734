"""What of the API is served by this version. The rest is accepted, and answered in a condition."""

from dataclasses import dataclass

from gpushare_core.policy import Backend, DialectName, Mode, NodeRule, PolicySpec, Source
from gpushare_operator import reasons
from gpushare_operator.views import PolicyView

MODES = frozenset({Mode.MEMORY, Mode.OFF})
SOURCES = frozenset({Source.SIMULATED})
DIALECTS = frozenset({DialectName.GPUSHARE})
BACKENDS = frozenset({Backend.KUBE_SCHEDULER})


@dataclass(frozen=True, slots=True)
class Unserved:
    """Something asked for that does not work yet."""

    reason: str
    message: str


def is_served(policy: PolicyView) -> bool:
    """Whether any node of ``policy`` can be enabled at all."""
    return policy.spec is not None and unserved_policy(policy.spec) is None


def unserved_policy(spec: PolicySpec) -> Unserved | None:
    """What keeps the whole policy from being served."""
    if spec.dialect not in DIALECTS:
        return _unserved(reasons.UNSUPPORTED_DIALECT, f"dialect {spec.dialect}", DIALECTS)
    if spec.scheduler.backend not in BACKENDS:
        return _unserved(reasons.UNSUPPORTED_BACKEND, f"scheduler.backend {spec.scheduler.backend}", BACKENDS)
    return None


def unserved_rule(rule: NodeRule) -> Unserved | None:
    """What keeps the nodes of one rule from being served."""
    if rule.mode not in MODES:
        return _unserved(reasons.UNSUPPORTED_MODE, f"mode {rule.mode}", MODES)
    if rule.mode is not Mode.OFF and rule.devices.source not in SOURCES:
        return _unserved(reasons.UNSUPPORTED_SOURCE, f"devices.source {rule.devices.source}", SOURCES)
    return None


def unserved(spec: PolicySpec) -> list[Unserved]:
    """Everything in ``spec`` that is not served, each thing once."""
    found = [unserved_policy(spec), *(unserved_rule(rule) for rule in spec.nodes)]
    return list(dict.fromkeys(each for each in found if each))


def _unserved(reason: str, asked: str, served: frozenset[str]) -> Unserved:
    works = " or ".join(sorted(served))
    return Unserved(reason, f"{asked} is not served by this version; use {works}")
