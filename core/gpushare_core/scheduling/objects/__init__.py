"""What is kept of a pod and of a GPUShareNode."""
