//go:build before1.34

package minor

import kubelet "k8s.io/kubernetes/cmd/kubelet/app"

// KubeletCommand is the kubelet's own.
var KubeletCommand = kubelet.NewKubeletCommand
