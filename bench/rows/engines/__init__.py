"""Rows that compare engines on one cluster: in turns where it is about speed, else one after the other."""
