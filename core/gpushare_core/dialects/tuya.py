"""Tuya's: whole cards, halves and memory beside each other. Its documents name resources only.

No annotation, label or ID of its plugin is published, so its running pods are not recognised.
"""

from gpushare_core.dialects.dialect import Dialect

TUYA = Dialect(
    name="tuya.com",
    memory_resource="tuya.com/vcuda-memory",
    slice_resource="tuya.com/sgpu",
    card_resource="nvidia.com/gpu",
    ignored_resources=("tuya.com/vcuda-core",),
)
