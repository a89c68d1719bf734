"""``kubectl gpushare``: what people ask of the cluster's cards."""
