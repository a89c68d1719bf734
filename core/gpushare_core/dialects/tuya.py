"""Tuya's dialect: whole cards, halves and memory beside each other.

Its documents name only resources, no annotation, label or device ID: its running pods are not recognised.
"""

from gpushare_core.dialects.dialect import Dialect

TUYA = Dialect(
    name="tuya.com",
    memory_resource="tuya.com/vcuda-memory",
    slice_resource="tuya.com/sgpu",
    card_resource="nvidia.com/gpu",
    shared_resources=("nvidia.com/gpu",),
    ignored_resources=("tuya.com/vcuda-core",),
)
