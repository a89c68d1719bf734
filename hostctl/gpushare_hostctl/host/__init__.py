"""The control-plane node: its files, and whether its kube-scheduler serves."""
