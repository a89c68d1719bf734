"""Kube-schedulers that people connect to the extender by themselves."""
