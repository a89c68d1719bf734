"""Which devices the kubelet is offered."""
