"""The cluster's own kube-schedulers, which hostctl connects to the engine on each control plane."""
