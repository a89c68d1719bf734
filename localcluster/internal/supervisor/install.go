package supervisor

import (
	"net"
	"os"

	"gpushare.io/localcluster/internal/config"
	"gpushare.io/localcluster/internal/node"
	"gpushare.io/localcluster/internal/pki"
)

// install writes what an administrator would have put on the machine's disk. A reboot finds it as it was left.
func (ms *machines) install(m *machine) error {
	if err := m.folder.Create(); err != nil {
		return err
	}
	kubernetes := m.folder.Join(config.Kubernetes)
	if err := os.WriteFile(kubernetes+"/pki/ca.crt", ms.pki.Certificate, 0o644); err != nil {
		return err
	}
	user := pki.Subject{User: "system:node:" + m.Name, Groups: []string{"system:nodes"}}
	if err := ms.pki.kubeconfig(kubernetes+"/kubelet.conf", user); err != nil {
		return err
	}
	serving, err := ms.pki.Issue(pki.Subject{
		User: "system:node:" + m.Name, Names: []string{m.Name}, Addresses: []net.IP{net.ParseIP(m.address())},
	})
	if err != nil {
		return err
	}
	if err := serving.Write(kubernetes+"/pki", "kubelet"); err != nil {
		return err
	}
	if err := node.WriteKubeletConfiguration(m.folder, m.ControlPlane); err != nil {
		return err
	}
	if !m.ControlPlane {
		return nil
	}
	if err := ms.pki.kubeconfig(kubernetes+"/scheduler.conf", pki.Subject{User: "system:kube-scheduler"}); err != nil {
		return err
	}
	return node.WriteSchedulerManifest(m.folder, ms.cluster.ComponentFlags["kube-scheduler"])
}
