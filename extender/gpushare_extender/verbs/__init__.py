"""What kube-scheduler, probes and people ask: filter, prioritize, bind, preempt, inspect, health, metrics."""
