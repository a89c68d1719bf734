"""The cluster's own kube-schedulers, which hostctl connects to the extender on each control plane."""
