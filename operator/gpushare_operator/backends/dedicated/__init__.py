"""A second kube-scheduler: our own with the plugin, or Kubernetes' own with the extender beside it."""
