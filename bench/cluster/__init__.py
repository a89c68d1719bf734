"""The cluster that rows are measured on: how it is made, and the objects that fill it."""
