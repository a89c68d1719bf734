"""The page of ``kubectl gpushare web``: a server on 127.0.0.1 that changes nothing, and what it serves."""
