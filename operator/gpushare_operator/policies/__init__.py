"""What is asked of the operator by all policies together, and the words in which it answers. Pure."""
