"""The dialects, one row each."""

from collections.abc import Mapping

from gpushare_core.dialects.aliyun import ALIYUN
from gpushare_core.dialects.dialect import Dialect
from gpushare_core.dialects.enflame import ENFLAME
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.dialects.tuya import TUYA
from gpushare_core.dialects.volcano import VOLCANO
from gpushare_core.placement.requests import ResourceClass

DIALECTS: Mapping[str, Dialect] = {
    dialect.name: dialect for dialect in (GPUSHARE, ALIYUN, VOLCANO, ENFLAME, TUYA)
}
"""By the name that the API has for them."""

RESOURCES: Mapping[str, ResourceClass] = {
    name: resource for dialect in DIALECTS.values() for name, resource in dialect.resources.items()
}
"""Name of an extended resource of any dialect -> its class."""

SHARED_RESOURCES = frozenset(name for dialect in DIALECTS.values() for name in dialect.shared_resources)
"""Those that others' plugins offer as well: ours only on nodes whose dialect has them."""

ASKED_RESOURCES = RESOURCES.keys() | {
    name for dialect in DIALECTS.values() for name in dialect.ignored_resources
}
"""A scheduler asks the extender about pods with one of these, and leaves the bind to it."""

ANNOTATION_KEYS: tuple[str, ...] = tuple(
    dict.fromkeys(
        (
            Dialect.allocation_annotation,
            *(key for dialect in DIALECTS.values() for key in dialect.codec.annotation_keys),
        )
    )
)
"""All annotations of pods that only our programs may set."""
