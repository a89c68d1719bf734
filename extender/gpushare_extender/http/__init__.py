"""What kube-scheduler, the kubelet's probes and people ask over HTTP."""
