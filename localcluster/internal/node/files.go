package node

import (
	_ "embed" // for the files below
	"os"
	"strings"

	"gpushare.io/localcluster/internal/config"
)

const kubeletConfiguration = "/var/lib/kubelet/config.yaml"

//go:embed files/kubelet.yaml
var kubeletYAML string

// schedulerYAML is, byte for byte, what `kubeadm init phase control-plane scheduler` of this version writes.
//
//go:embed files/kube-scheduler.yaml
var schedulerYAML string

const controlPlaneTaint = `registerWithTaints:
- {key: node-role.kubernetes.io/control-plane, effect: NoSchedule}
`

// WriteKubeletConfiguration writes the kubelet's configuration file into a node's folder.
func WriteKubeletConfiguration(folder config.NodeDirectory, controlPlane bool) error {
	content := kubeletYAML
	if controlPlane {
		content += controlPlaneTaint
	}
	return os.WriteFile(folder.Join(config.Kubelet, "config.yaml"), []byte(content), 0o644)
}

// WriteSchedulerManifest makes kube-scheduler a static pod of the node.
func WriteSchedulerManifest(folder config.NodeDirectory, extraFlags []string) error {
	path := folder.Join(config.Kubernetes, "manifests", "kube-scheduler.yaml")
	return os.WriteFile(path, []byte(schedulerManifest(extraFlags)), 0o600)
}

func schedulerManifest(extraFlags []string) string {
	last := "    - --leader-elect=true\n"
	lines := last
	for _, flag := range extraFlags {
		lines += "    - " + flag + "\n"
	}
	return strings.Replace(schedulerYAML, last, lines, 1)
}
