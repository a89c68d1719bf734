"""Engines in turns on one cluster: the product's programs as its pods run them, without operator and pods."""
