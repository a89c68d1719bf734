"""What the page of ``kubectl gpushare web`` is made from: a watch of GPUShareNodes, the rest read again."""
