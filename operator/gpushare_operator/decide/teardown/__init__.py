"""How a policy is taken back: the order of the steps, and what each kind of leftover is."""
