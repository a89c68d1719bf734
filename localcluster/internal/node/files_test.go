package node

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"

	"gpushare.io/localcluster/internal/config"
)

func TestTheSchedulerManifestIsAPodWithTheExtraFlagsLast(t *testing.T) {
	for name, flags := range map[string][]string{"none": nil, "two": {"--v=3", "--kube-api-qps=100"}} {
		t.Run(name, func(t *testing.T) {
			var pod corev1.Pod
			if err := yaml.UnmarshalStrict([]byte(schedulerManifest("v1.34.4", flags)), &pod); err != nil {
				t.Fatal(err)
			}
			if image := pod.Spec.Containers[0].Image; image != "registry.k8s.io/kube-scheduler:v1.34.4" {
				t.Errorf("the image is %s", image)
			}
			command := pod.Spec.Containers[0].Command
			wanted := append([]string{"--leader-elect=true"}, flags...)
			if got := command[len(command)-len(wanted):]; strings.Join(got, " ") != strings.Join(wanted, " ") {
				t.Errorf("command ends in %q, wanted %q", got, wanted)
			}
		})
	}
}

func TestOnlyControlPlaneNodesRegisterWithATaint(t *testing.T) {
	for name, test := range map[string]struct {
		controlPlane bool
		taints       int
	}{"worker": {false, 0}, "control plane": {true, 1}} {
		t.Run(name, func(t *testing.T) {
			folder := config.Directory(t.TempDir()).Node("a")
			if err := folder.Create(); err != nil {
				t.Fatal(err)
			}
			if err := WriteKubeletConfiguration(folder, test.controlPlane, ""); err != nil {
				t.Fatal(err)
			}
			content, err := os.ReadFile(folder.Join(config.Kubelet, "config.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			var kubelet kubeletconfig.KubeletConfiguration
			if err := yaml.UnmarshalStrict(content, &kubelet); err != nil {
				t.Fatal(err)
			}
			if len(kubelet.RegisterWithTaints) != test.taints {
				t.Errorf("taints are %v", kubelet.RegisterWithTaints)
			}
			if kubelet.ContainerRuntimeEndpoint != "unix://"+criSocket {
				t.Errorf("the kubelet looks for the runtime at %s, it is at %s", kubelet.ContainerRuntimeEndpoint, criSocket)
			}
		})
	}
}

func TestPodsHaveCgroupsWhereContainersAreReal(t *testing.T) {
	for cgroup, perPod := range map[string]*bool{"": new(bool), "/cluster/a": nil} {
		folder := config.Directory(t.TempDir()).Node("a")
		if err := folder.Create(); err != nil {
			t.Fatal(err)
		}
		if err := WriteKubeletConfiguration(folder, false, cgroup); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(folder.Join(config.Kubelet, "config.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var kubelet kubeletconfig.KubeletConfiguration
		if err := yaml.UnmarshalStrict(content, &kubelet); err != nil {
			t.Fatal(err)
		}
		if kubelet.CgroupRoot != cgroup || (kubelet.CgroupsPerQOS == nil) != (perPod == nil) {
			t.Errorf("with cgroup %q: root %q, per pod %v", cgroup, kubelet.CgroupRoot, kubelet.CgroupsPerQOS)
		}
	}
}
