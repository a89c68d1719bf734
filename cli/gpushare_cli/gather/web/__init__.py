"""What the page of ``kubectl gpushare web`` is made from: GPUShareNodes are watched, the rest is read again."""
