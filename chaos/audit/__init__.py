"""The books of the local cluster, each read where it is kept, and given to core's auditor."""
