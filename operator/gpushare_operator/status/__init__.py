"""What a policy's status and Events say. Pure."""
