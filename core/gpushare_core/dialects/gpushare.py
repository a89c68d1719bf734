"""Our own dialect. Its annotation and variables are those that every dialect has."""

from gpushare_core.dialects.dialect import Dialect

GPUSHARE = Dialect(name="gpushare.io", inspect_path="/gpushare/inspect")
