"""Which pods would have to go so that a request fits a node, and which of them disruption budgets protect."""
