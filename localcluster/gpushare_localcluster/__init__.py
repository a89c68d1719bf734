"""A real Kubernetes control plane and real kubelets on one machine, for tests and for trying things out."""
