"""What the programs talk to when they are measured without a cluster."""
