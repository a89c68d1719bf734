"""Talking with the kubelet: registration, the device plugin API, PodResources."""
