"""What the roles in the manifests allow, to compare with what a program does."""

from pathlib import Path

import yaml

Right = tuple[str, str, str]
"""API group, resource with subresource, verb."""


def allowed(manifest: Path) -> set[Right]:
    """All that the roles in ``manifest`` allow together."""
    roles = [document for document in yaml.safe_load_all(manifest.read_text()) if "rules" in document]
    return {
        (group, resource, verb)
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def group_and_parts(path: str) -> tuple[str, list[str]]:
    """The API group of ``path``, and resource, name and subresource as far as it has them."""
    parts = path.strip("/").split("/")
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
    return group, rest[2:] if rest[0] == "namespaces" else rest
