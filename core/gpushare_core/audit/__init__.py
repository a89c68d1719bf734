"""The auditor: where the books differ about who has what of which card. Pure."""
