"""Shared by all programs of gpushare: API models, units, the allocation codec, the placement engine."""
