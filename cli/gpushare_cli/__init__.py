"""``kubectl gpushare``: audits of the cluster, and what an uninstall has left."""
