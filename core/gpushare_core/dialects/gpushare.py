"""Our own dialect: the annotation and variables that every dialect has, and no more."""

from gpushare_core.dialects.dialect import Dialect

GPUSHARE = Dialect(name="gpushare.io", inspect_path="/gpushare/inspect")
