"""What people see of what a cluster has for gpushare, and of the versions that run. Pure."""
