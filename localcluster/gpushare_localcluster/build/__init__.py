"""What is built or fetched once and kept in a cache: the cluster, Helm, Volcano, containerd."""
