"""Reads what decides whether gpushare can be used in a cluster, whether it is installed there or not."""
