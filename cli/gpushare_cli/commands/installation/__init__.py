"""The commands about the installation itself: what a cluster has for it, and which versions run."""
