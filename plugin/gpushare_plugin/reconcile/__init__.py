"""One round makes true what follows from the state: cards, the kubelet's list, annotations, the status."""
