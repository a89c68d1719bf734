"""What is written to the GPUShareNode, to pods and as metrics."""
