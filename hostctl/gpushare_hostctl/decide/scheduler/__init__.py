"""What kube-scheduler reads: manifest, flags, configuration and keys as bytes, and how they are edited."""
