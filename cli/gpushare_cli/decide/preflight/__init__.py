"""Whether gpushare can be used in a cluster: what fits, what is missing, and what to do about it. Pure."""
