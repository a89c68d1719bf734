"""What a watch keeps of a pod and of a GPUShareNode."""
