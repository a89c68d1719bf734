"""The auditor: what each book says of who has what of which card, and where books differ. Pure."""
