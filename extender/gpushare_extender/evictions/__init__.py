"""Making room on a card for a pod of higher priority, by evicting others."""
