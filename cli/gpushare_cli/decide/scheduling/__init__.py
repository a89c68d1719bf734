"""Which nodes kube-scheduler's own rules leave to a pod: labels, taints, affinity."""
