"""The cards of every node: who holds what of them, what they use, what is free, and what is wrong."""
