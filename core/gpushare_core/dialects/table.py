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
"""Name of an extended resource of any dialect -> the class that it stands for."""

ANNOTATION_KEYS: tuple[str, ...] = tuple(
    dict.fromkeys(
        (
            Dialect.allocation_annotation,
            *(key for dialect in DIALECTS.values() for key in dialect.codec.annotation_keys),
        )
    )
)
"""Every annotation of pods that only our programs may set."""
