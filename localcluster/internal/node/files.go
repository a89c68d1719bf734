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

// withoutCgroups is the line of the kubelet's configuration that containers as plain processes need.
const withoutCgroups = "cgroupsPerQOS: false\n"

// WriteKubeletConfiguration writes the kubelet's configuration file into a node's folder. Pods get cgroups of their
// own below cgroup; if it is empty they get none.
func WriteKubeletConfiguration(folder config.NodeDirectory, controlPlane bool, cgroup string) error {
	content := kubeletYAML
	if cgroup != "" {
		content = strings.Replace(content, withoutCgroups, "cgroupRoot: "+cgroup+"\n", 1)
	}
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
