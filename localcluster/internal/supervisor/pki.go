package supervisor

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"gpushare.io/localcluster/internal/config"
	"gpushare.io/localcluster/internal/network"
	"gpushare.io/localcluster/internal/pki"
)

const (
	apiServer = "https://" + apiAddress
	masters   = "system:masters"
)

// clusterPKI is the cluster's authority and where its products lie.
type clusterPKI struct {
	*pki.Authority
	directory config.Directory
}

// createPKI issues what the control plane needs and the administrator's kubeconfig for the host's address.
func createPKI(directory config.Directory, listen *net.TCPAddr) (*clusterPKI, error) {
	if err := os.MkdirAll(directory.PKI(""), 0o700); err != nil {
		return nil, err
	}
	authority, err := pki.NewAuthority("kubernetes")
	if err != nil {
		return nil, err
	}
	p := &clusterPKI{Authority: authority, directory: directory}
	return p, errors.Join(
		authority.Write(directory.PKI(""), "ca"),
		p.pair("apiserver", servingSubject(listen.IP)),
		p.pair("apiserver-kubelet-client", pki.Subject{User: "kube-apiserver-kubelet-client", Groups: []string{masters}}),
		p.serviceAccountKey(),
		p.component("controller-manager", pki.Subject{User: "system:kube-controller-manager"}),
		p.component("supervisor", pki.Subject{User: "localcluster", Groups: []string{masters}}),
		p.administrator(listen),
	)
}

func servingSubject(listen net.IP) pki.Subject {
	addresses := []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(network.ServiceAddress), net.ParseIP(network.Gateway)}
	if !listen.IsUnspecified() {
		addresses = append(addresses, listen)
	}
	return pki.Subject{
		User:      "kube-apiserver",
		Addresses: addresses,
		Names: []string{
			"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
		},
	}
}

func (p *clusterPKI) pair(name string, subject pki.Subject) error {
	pair, err := p.Issue(subject)
	if err != nil {
		return err
	}
	return pair.Write(p.directory.PKI(""), name)
}

func (p *clusterPKI) serviceAccountKey() error {
	private, public, err := pki.NewKey()
	if err != nil {
		return err
	}
	if err := os.WriteFile(p.directory.PKI("sa.key"), private, 0o600); err != nil {
		return err
	}
	return os.WriteFile(p.directory.PKI("sa.pub"), public, 0o644)
}

// component writes NAME.conf for a client inside the cluster.
func (p *clusterPKI) component(name string, subject pki.Subject) error {
	return p.kubeconfig(p.directory.PKI(name+".conf"), subject)
}

func (p *clusterPKI) kubeconfig(path string, subject pki.Subject) error {
	client, err := p.Issue(subject)
	if err != nil {
		return err
	}
	return p.WriteKubeconfig(path, pki.Login{Server: apiServer, User: subject.User, Client: client})
}

// administrator writes the host's kubeconfig. It logs in by a token, which plain HTTP clients can use too.
func (p *clusterPKI) administrator(listen *net.TCPAddr) error {
	random := make([]byte, 16)
	if _, err := rand.Read(random); err != nil {
		return err
	}
	token := hex.EncodeToString(random)
	line := fmt.Sprintf("%s,admin,admin,%s\n", token, masters)
	if err := os.WriteFile(p.directory.PKI("tokens.csv"), []byte(line), 0o600); err != nil {
		return err
	}
	host := listen.IP.String()
	if listen.IP.IsUnspecified() {
		host = "127.0.0.1"
	}
	server := fmt.Sprintf("https://%s", net.JoinHostPort(host, fmt.Sprint(listen.Port)))
	return p.WriteKubeconfig(p.directory.Kubeconfig(), pki.Login{Server: server, User: "admin", Token: token})
}

func (p *clusterPKI) client(directory config.Directory) (kubernetes.Interface, error) {
	rest, err := clientcmd.BuildConfigFromFlags("", directory.PKI("supervisor.conf"))
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(rest)
}
