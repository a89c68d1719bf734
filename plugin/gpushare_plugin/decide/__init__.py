"""What is offered, given out, repaired and reported. Pure."""
