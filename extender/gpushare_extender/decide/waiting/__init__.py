"""Pods that wait: which requests come again, which pods no scheduler or node serves."""
