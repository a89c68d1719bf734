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

// schedulerYAML is, byte for byte, what `kubeadm init phase control-plane scheduler` writes, with a template's VERSION.
//
//go:embed files/kube-scheduler.yaml
var schedulerYAML string

// schedulerVersion stands for the version in schedulerYAML.
const schedulerVersion = "VERSION"

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

// WriteSchedulerManifest makes kube-scheduler of a version a static pod of the node. It replaces the file as a whole,
// as `kubeadm upgrade` does.
func WriteSchedulerManifest(folder config.NodeDirectory, version string, extraFlags []string) error {
	staged := folder.Join(config.Kubernetes, "kube-scheduler.yaml")
	if err := os.WriteFile(staged, []byte(schedulerManifest(version, extraFlags)), 0o600); err != nil {
		return err
	}
	return os.Rename(staged, folder.Join(config.Kubernetes, "manifests", "kube-scheduler.yaml"))
}

func schedulerManifest(version string, extraFlags []string) string {
	last := "    - --leader-elect=true\n"
	lines := last
	for _, flag := range extraFlags {
		lines += "    - " + flag + "\n"
	}
	return strings.NewReplacer(last, lines, schedulerVersion, version).Replace(schedulerYAML)
}
