"""Which engine places pods: the one that is asked for, if there is one for the API server's version."""

from dataclasses import dataclass

from gpushare_core.api.enums import Engine
from gpushare_core.kubernetes_minors import (
    ENGINE_RANGE,
    NEWEST,
    KubernetesMinor,
    engine_minor,
    minor_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineChoice:
    """Which engine places pods."""

    minor: KubernetesMinor | None = None
    """Of gpushare's own kube-scheduler, with engine Plugin; None with engine Extender."""
    fallback: str = ""
    """Why it is Extender though Plugin is asked for; a clause for people."""

    @property
    def engine(self) -> Engine:
        return Engine.PLUGIN if self.minor else Engine.EXTENDER

    @property
    def fallback_note(self) -> str:
        """Returns what a condition's message says besides; empty without a fallback."""
        if not self.fallback:
            return ""
        return f"; engine {Engine.EXTENDER} is used in place of {Engine.PLUGIN}: {self.fallback}"


def choose_engine(desired: Engine, kubernetes: str) -> EngineChoice:
    """``kubernetes``: version of the API server, such as ``v1.36.3``; while it is not known there is nothing
    to explain: a backend that needs it waits for it."""
    server = minor_of(kubernetes)
    if desired is Engine.EXTENDER or server is None:
        return EngineChoice()
    minor = engine_minor(server)
    return EngineChoice(minor=minor, fallback="" if minor else _why_none(server))


def _why_none(server: KubernetesMinor) -> str:
    remedy = "; a newer gpushare may have one" if server > NEWEST else ""
    return (
        f"this gpushare has its own kube-scheduler for Kubernetes {ENGINE_RANGE}, and none for API servers of"
        f" {server}{remedy}"
    )
