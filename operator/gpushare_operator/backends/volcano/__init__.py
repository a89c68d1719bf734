"""Volcano's scheduler, in whose ConfigMap GPU sharing is switched on."""
