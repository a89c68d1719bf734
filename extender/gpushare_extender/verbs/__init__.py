"""What kube-scheduler, probes and people request: filter, prioritize, bind, preempt, inspect, health,
metrics."""
