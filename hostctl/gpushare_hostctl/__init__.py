"""Connects a control-plane node's kube-scheduler to the extender, and restores it byte for byte."""
