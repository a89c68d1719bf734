package supervisor

import (
	"errors"
	"path/filepath"

	"k8s.io/kubernetes/cmd/kubeadm/app/constants"

	"gpushare.io/localcluster/internal/config"
	"gpushare.io/localcluster/internal/node"
)

// install writes what an administrator would have put on the machine's disk. A reboot finds it as it was left.
func (ms *machines) install(m *machine) error {
	if err := m.folder.Create(); err != nil {
		return err
	}
	kubernetes := m.folder.Join(config.Kubernetes)
	if err := ms.installKubeletPKI(m, kubernetes); err != nil {
		return err
	}
	if err := node.WriteKubeletConfiguration(m.folder, m.ControlPlane, ms.cgroup(m)); err != nil {
		return err
	}
	if !m.ControlPlane {
		return nil
	}
	if err := ms.pki.kubeconfig(filepath.Join(kubernetes, constants.SchedulerKubeConfigFileName), constants.SchedulerUser); err != nil {
		return err
	}
	return node.WriteSchedulerManifest(m.folder, ms.cluster.ComponentFlags["kube-scheduler"])
}

// installKubeletPKI writes what the kubelet trusts, logs in with and serves by.
func (ms *machines) installKubeletPKI(m *machine, kubernetes string) error {
	folder := filepath.Join(kubernetes, "pki")
	login := filepath.Join(kubernetes, constants.KubeletKubeConfigFileName)
	return errors.Join(
		ms.pki.authority(folder),
		ms.pki.kubeconfig(login, constants.NodesUserPrefix+m.Name, constants.NodesGroup),
		ms.pki.kubeletServing(folder, m.Name, m.address()),
	)
}
