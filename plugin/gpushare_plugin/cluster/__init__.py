"""What the plugin watches in the cluster: its GPUShareNode and its node's pods."""
