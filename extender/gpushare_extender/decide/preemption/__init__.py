"""Which pods have to end so that a pod of higher priority fits."""
