package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	"k8s.io/component-base/version"
	"k8s.io/kubernetes/cmd/kubeadm/app/constants"

	"gpushare.io/localcluster/internal/config"
	"gpushare.io/localcluster/internal/node"
)

// install writes what an administrator would have put on the machine's disk. A reboot finds it as it was left.
func (ms *machines) install(m *machine) error {
	if err := errors.Join(m.folder.Create(), m.mountDisks(), m.folder.Create()); err != nil {
		return err
	}
	kubernetes := m.folder.Join(config.Kubernetes)
	if err := ms.installKubeletPKI(m, kubernetes); err != nil {
		return err
	}
	if err := node.WriteKubeletConfiguration(m.folder, m.ControlPlane, ms.cgroup(m)); err != nil {
		return err
	}
	if err := m.linkKubelet(); err != nil {
		return err
	}
	if !m.ControlPlane {
		return nil
	}
	if err := ms.pki.kubeconfig(filepath.Join(kubernetes, constants.SchedulerKubeConfigFileName), constants.SchedulerUser); err != nil {
		return err
	}
	return ms.writeSchedulerManifest(m, version.Get().GitVersion)
}

func (ms *machines) writeSchedulerManifest(m *machine, version string) error {
	return node.WriteSchedulerManifest(m.folder, version, ms.cluster.ComponentFlags["kube-scheduler"])
}

// linkKubelet says which kubelet the machine runs if it is not the cluster's own.
func (m *machine) linkKubelet() error {
	if m.Kubelet == "" {
		return nil
	}
	return os.Symlink(m.Kubelet, m.folder.Join(config.Programs, node.KubeletLink))
}

// mountDisks mounts the machine's small file systems, where a reboot of the machine finds them again.
func (m *machine) mountDisks() error {
	for path, size := range m.Disks {
		place, err := m.folder.Place(path)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(place, 0o755); err != nil {
			return err
		}
		if err := unix.Mount("tmpfs", place, "tmpfs", 0, "mode=0755,size="+size); err != nil {
			return fmt.Errorf("mount the disk %s of %s: %w", path, m.Name, err)
		}
	}
	if len(m.Disks) == 0 {
		return nil
	}
	content, err := json.Marshal(m.Disks)
	if err != nil {
		return err
	}
	return os.WriteFile(m.folder.Disks(), content, 0o644)
}

// unmountDisks forgets what is on them. A machine that is off holds none of them.
func (m *machine) unmountDisks() error {
	var failures []error
	for path := range m.Disks {
		place, err := m.folder.Place(path)
		failures = append(failures, err, unix.Unmount(place, unix.MNT_DETACH))
	}
	return errors.Join(failures...)
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
