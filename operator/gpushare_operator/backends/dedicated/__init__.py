"""A kube-scheduler of our own, with the extender beside it in its pod."""
