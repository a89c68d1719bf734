//go:build before1.35

// Package minor is what the components of one minor of Kubernetes are told and those of another are not.
package minor

// KubeletFlags are added to a kubelet's command line. Its configuration says how soon containers are started again.
var KubeletFlags = []string{"--feature-gates=KubeletCrashLoopBackOffMax=true"}
