"""The commands that change the cluster; the others only read it."""
