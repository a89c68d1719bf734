package supervisor

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm"
	"k8s.io/kubernetes/cmd/kubeadm/app/constants"
	"k8s.io/kubernetes/cmd/kubeadm/app/phases/certs"
	"k8s.io/kubernetes/cmd/kubeadm/app/phases/kubeconfig"
	"k8s.io/kubernetes/cmd/kubeadm/app/util/pkiutil"

	"gpushare.io/localcluster/internal/config"
	"gpushare.io/localcluster/internal/network"
)

const (
	clusterDomain        = "cluster.local"
	administratorUser    = "admin"
	supervisorKubeconfig = "supervisor.conf"

	// keyAlgorithm is quicker than kubeadm's default, RSA, and every node has keys of its own.
	keyAlgorithm = kubeadm.EncryptionAlgorithmECDSAP256
)

// clusterPKI issues a cluster's certificates and kubeconfigs by means of kubeadm. They are valid for a year and
// the authority's own for ten, from five minutes before now: a clock may be set back a little.
type clusterPKI struct {
	directory   config.Directory
	settings    kubeadm.InitConfiguration
	certificate *x509.Certificate
	key         crypto.Signer
}

// createPKI issues what the control plane needs and the administrator's kubeconfig for the host's address.
func createPKI(directory config.Directory, listen *net.TCPAddr) (*clusterPKI, error) {
	if err := os.MkdirAll(directory.PKI(""), 0o700); err != nil {
		return nil, err
	}
	settings := kubeadmSettings(directory, listen.IP)
	certificate, key, err := certs.KubeadmCertRootCA().CreateAsCA(&settings)
	if err != nil {
		return nil, err
	}
	p := &clusterPKI{directory: directory, settings: settings, certificate: certificate, key: key}
	return p, errors.Join(
		certs.KubeadmCertAPIServer().CreateFromCA(&settings, certificate, key),
		certs.CreateServiceAccountKeyAndPublicKeyFiles(directory.PKI(""), keyAlgorithm),
		p.kubeletClient(),
		p.component(constants.ControllerManagerKubeConfigFileName, constants.ControllerManagerUser),
		p.component(supervisorKubeconfig, "localcluster", constants.SystemPrivilegedGroup),
		p.administrator(listen),
	)
}

// kubeadmSettings describe the cluster to kubeadm: the apiserver's certificate has every address they name.
func kubeadmSettings(directory config.Directory, listen net.IP) kubeadm.InitConfiguration {
	alternativeNames := []string{"localhost", "127.0.0.1"}
	if !listen.IsUnspecified() {
		alternativeNames = append(alternativeNames, listen.String())
	}
	return kubeadm.InitConfiguration{
		LocalAPIEndpoint: kubeadm.APIEndpoint{AdvertiseAddress: network.Gateway, BindPort: apiPort},
		ClusterConfiguration: kubeadm.ClusterConfiguration{
			ClusterName:          "local",
			CertificatesDir:      directory.PKI(""),
			ControlPlaneEndpoint: network.Gateway,
			Networking:           kubeadm.Networking{ServiceSubnet: network.ServiceRange, DNSDomain: clusterDomain},
			APIServer:            kubeadm.APIServer{CertSANs: alternativeNames},
			EncryptionAlgorithm:  keyAlgorithm,
		},
	}
}

// kubeletClient issues what the apiserver shows the kubelets. kubeadm's own is in no group: its rights come
// from an object that `kubeadm init` creates.
func (p *clusterPKI) kubeletClient() error {
	return p.issue(p.directory.PKI(""), constants.APIServerKubeletClientCertAndKeyBaseName, certutil.Config{
		CommonName:   constants.APIServerKubeletClientCertCommonName,
		Organization: []string{constants.SystemPrivilegedGroup},
		Usages:       []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// kubeletServing issues what a kubelet shows the apiserver. With kubeadm, a kubelet signs that itself.
func (p *clusterPKI) kubeletServing(folder, node, address string) error {
	return p.issue(folder, "kubelet", certutil.Config{
		CommonName: constants.NodesUserPrefix + node,
		AltNames:   certutil.AltNames{DNSNames: []string{node}, IPs: []net.IP{net.ParseIP(address)}},
		Usages:     []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	})
}

// issue writes NAME.crt and NAME.key into a folder.
func (p *clusterPKI) issue(folder, name string, subject certutil.Config) error {
	certificate, key, err := pkiutil.NewCertAndKey(
		p.certificate, p.key, &pkiutil.CertConfig{Config: subject, EncryptionAlgorithm: keyAlgorithm},
	)
	if err != nil {
		return err
	}
	return pkiutil.WriteCertAndKey(folder, name, certificate, key)
}

// authority writes ca.crt into a folder.
func (p *clusterPKI) authority(folder string) error {
	return pkiutil.WriteCert(folder, constants.CACertAndKeyBaseName, p.certificate)
}

// component writes a kubeconfig for a part of the control plane.
func (p *clusterPKI) component(file, user string, groups ...string) error {
	return p.kubeconfig(p.directory.PKI(file), user, groups...)
}

// kubeconfig writes a kubeconfig for a client inside the cluster, which logs in by a certificate.
func (p *clusterPKI) kubeconfig(path, user string, groups ...string) error {
	var content bytes.Buffer
	if err := kubeconfig.WriteKubeConfigWithClientCert(&content, &p.settings, user, groups, time.Time{}); err != nil {
		return err
	}
	return os.WriteFile(path, content.Bytes(), 0o600)
}

// administrator writes the host's kubeconfig. It logs in by a token, which plain HTTP clients can use too.
func (p *clusterPKI) administrator(listen *net.TCPAddr) error {
	random := make([]byte, 16)
	if _, err := rand.Read(random); err != nil {
		return err
	}
	token := hex.EncodeToString(random)
	line := fmt.Sprintf("%s,%s,%[2]s,%[3]s\n", token, administratorUser, constants.SystemPrivilegedGroup)
	if err := os.WriteFile(p.directory.PKI("tokens.csv"), []byte(line), 0o600); err != nil {
		return err
	}
	var content bytes.Buffer
	onHost := settingsOnHost(p.settings, listen)
	if err := kubeconfig.WriteKubeConfigWithToken(&content, &onHost, administratorUser, token, time.Time{}); err != nil {
		return err
	}
	return os.WriteFile(p.directory.Kubeconfig(), content.Bytes(), 0o600)
}

// settingsOnHost name the API's address as the host sees it.
func settingsOnHost(settings kubeadm.InitConfiguration, listen *net.TCPAddr) kubeadm.InitConfiguration {
	host := listen.IP.String()
	if listen.IP.IsUnspecified() {
		host = "127.0.0.1"
	}
	settings.ControlPlaneEndpoint = ""
	settings.LocalAPIEndpoint = kubeadm.APIEndpoint{AdvertiseAddress: host, BindPort: int32(listen.Port)}
	return settings
}

// client returns the supervisor's own client of the apiserver.
func (p *clusterPKI) client() (kubernetes.Interface, error) {
	rest, err := clientcmd.BuildConfigFromFlags("", p.directory.PKI(supervisorKubeconfig))
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(rest)
}
