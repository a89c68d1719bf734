"""Binding a pod to a node with units of a card, so that node and card become true in one step."""
