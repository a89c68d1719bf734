"""`make demo`: the product on a real Kubernetes with simulated cards, played for a person to watch."""
