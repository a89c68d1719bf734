"""``kubectl gpushare``: what people ask about shared cards, and the few things that they have it do."""
