"""The books of the local cluster, read by their own ways and given to core's auditor."""
