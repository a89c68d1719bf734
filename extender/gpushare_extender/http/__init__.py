"""What kube-scheduler and people ask over HTTP."""
