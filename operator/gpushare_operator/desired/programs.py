"""Priority and resources that an administrator may choose for the programs that the operator starts."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError
from pydantic.alias_generators import to_camel

from gpushare_core.text.json_object import Json

Quantity = Annotated[str, StringConstraints(pattern=r"^[0-9]+(\.[0-9]+)?(m|k|M|G|Ki|Mi|Gi)?$")]


class _Settings(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, coerce_numbers_to_str=True
    )


class Amounts(_Settings):
    """Requests or limits of a container."""

    cpu: Quantity | None = None
    memory: Quantity | None = None


class Resources(_Settings):
    """The ``resources`` of a container, cpu and memory only: our admission policy refuses the rest."""

    requests: Amounts = Amounts()
    limits: Amounts = Amounts()

    def to_json(self) -> Json:
        return self.model_dump(exclude_none=True, exclude_defaults=True)


class Program(_Settings):
    """What is chosen for one program; for the rest the operator has defaults."""

    priority_class_name: str = ""
    resources: Resources | None = None


class Programs(_Settings):
    """hostctl is as the extender, for which it prepares the host."""

    plugin: Program = Program()
    extender: Program = Program()


class UnusableProgramsError(ValueError):
    """The option ``--programs`` cannot be read; the text says what is wrong, for people."""


def read_programs(text: str) -> Programs:
    """Reads the JSON of ``Programs``. Raises UnusableProgramsError."""
    try:
        return Programs.model_validate_json(text)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, problem['loc'])) or text}: {problem['msg']}" for problem in error.errors()
        )
        raise UnusableProgramsError(
            f"--programs cannot be used: {problems}; it takes JSON such as"
            ' {"plugin": {"priorityClassName": "system-node-critical",'
            ' "resources": {"requests": {"memory": "64Mi"}}}, "extender": {}}'
        ) from error
