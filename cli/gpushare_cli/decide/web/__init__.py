"""What the page of ``kubectl gpushare web`` shows: rows of nodes, lists, and what changed since a version."""
