"""Who holds and who waits: by pod, and summed by namespace beside its ResourceQuota."""
