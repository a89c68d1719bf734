"""The conditions of a policy, a module each."""
