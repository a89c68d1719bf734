"""NVIDIA's cards, by NVML."""
