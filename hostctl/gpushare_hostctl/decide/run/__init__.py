"""What one run decides: which files the host gets, and whether kube-scheduler has restarted with them."""
