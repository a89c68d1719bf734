"""Which units of which card are free in a whole cluster, and which nodes and cards a pod fits."""
