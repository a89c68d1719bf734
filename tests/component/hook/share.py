"""What containers of these tests have of which card."""

from tests.fakes.cuda_driver import GIB

FIRST = "GPU-a0000000-1111-2222-3333-444444444401"
SECOND = "GPU-b0000000-1111-2222-3333-444444444402"
SHARE = 4 * GIB
"""Bytes, of the first card's 16 GiB."""
