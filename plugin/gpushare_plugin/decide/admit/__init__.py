"""Which pod the kubelet is admitting, which units it gets, and what comes with them."""
