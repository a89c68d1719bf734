"""Reads what there is to know of one pod and of the cluster that it is to run in."""
