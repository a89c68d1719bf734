"""The extender on scheduler hosts, as kube-schedulers that hostctl or people connect need it."""
