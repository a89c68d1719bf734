package supervisor

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	certutil "k8s.io/client-go/util/cert"

	"gpushare.io/localcluster/internal/config"
)

var hostAddress = &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 6443}

func newPKI(t *testing.T, listen *net.TCPAddr) *clusterPKI {
	t.Helper()
	p, err := createPKI(config.Directory(t.TempDir()), listen)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.kubeletServing(p.directory.PKI(""), "gpu-1", "172.30.0.11"); err != nil {
		t.Fatal(err)
	}
	return p
}

// readPair reads a certificate whose key must lie beside it.
func (p *clusterPKI) readPair(t *testing.T, name string) *x509.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(p.directory.PKI(name+".crt"), p.directory.PKI(name+".key"))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return pair.Leaf
}

func (p *clusterPKI) readKubeconfig(t *testing.T, path string) *rest.Config {
	t.Helper()
	login, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := os.ReadFile(p.directory.PKI("ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	if string(login.CAData) != string(authority) {
		t.Errorf("%s trusts %q", path, login.CAData)
	}
	return login
}

// verify says whether a certificate of this cluster is good for what the options ask.
func (p *clusterPKI) verify(certificate *x509.Certificate, options x509.VerifyOptions) error {
	options.Roots = x509.NewCertPool()
	options.Roots.AddCert(p.certificate)
	_, err := certificate.Verify(options)
	return err
}

func TestIssuedCertificatesAreGoodForWhatTheirSubjectNeeds(t *testing.T) {
	client := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	server := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	p := newPKI(t, hostAddress)
	for name, test := range map[string]struct {
		file    string
		options x509.VerifyOptions
		wanted  bool
	}{
		"a client logs in":                  {"apiserver-kubelet-client", x509.VerifyOptions{KeyUsages: client}, true},
		"a client does not serve":           {"apiserver-kubelet-client", x509.VerifyOptions{KeyUsages: server}, false},
		"a server serves its name":          {"apiserver", x509.VerifyOptions{KeyUsages: server, DNSName: "kubernetes"}, true},
		"a server serves no other name":     {"apiserver", x509.VerifyOptions{KeyUsages: server, DNSName: "other"}, false},
		"a server serves its address":       {"apiserver", x509.VerifyOptions{KeyUsages: server, DNSName: "10.96.0.1"}, true},
		"a server serves no other address":  {"apiserver", x509.VerifyOptions{KeyUsages: server, DNSName: "10.96.0.2"}, false},
		"a kubelet serves its name":         {"kubelet", x509.VerifyOptions{KeyUsages: server, DNSName: "gpu-1"}, true},
		"a kubelet serves its address":      {"kubelet", x509.VerifyOptions{KeyUsages: server, DNSName: "172.30.0.11"}, true},
		"a kubelet serves no other address": {"kubelet", x509.VerifyOptions{KeyUsages: server, DNSName: "172.30.0.12"}, false},
		"a kubelet may also log in by it":   {"kubelet", x509.VerifyOptions{KeyUsages: client}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if err := p.verify(p.readPair(t, test.file), test.options); (err == nil) != test.wanted {
				t.Errorf("verify: %v, wanted success: %t", err, test.wanted)
			}
		})
	}
}

func TestTheAPIServesEveryAddressOfItsOwn(t *testing.T) {
	common := []string{
		"10.96.0.1", "127.0.0.1", "172.30.0.1",
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "localhost",
	}
	for name, test := range map[string]struct {
		listen *net.TCPAddr
		wanted []string
	}{
		"on one address": {hostAddress, append([]string{"192.0.2.7"}, common...)},
		"on loopback":    {&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, common},
		"on all":         {&net.TCPAddr{IP: net.IPv4zero}, common},
	} {
		t.Run(name, func(t *testing.T) {
			test.listen.Port = 6443
			serving := newPKI(t, test.listen).readPair(t, "apiserver")
			got := slices.Clone(serving.DNSNames)
			for _, address := range serving.IPAddresses {
				got = append(got, address.String())
			}
			slices.Sort(got)
			slices.Sort(test.wanted)
			if !slices.Equal(got, test.wanted) {
				t.Errorf("the certificate has %q, wanted %q", got, test.wanted)
			}
		})
	}
}

func TestUsersAndGroupsAreInTheSubject(t *testing.T) {
	p := newPKI(t, hostAddress)
	if err := p.component("kubelet.conf", "system:node:gpu-1", "system:nodes"); err != nil {
		t.Fatal(err)
	}
	for file, wanted := range map[string]string{
		"kubelet.conf":            "CN=system:node:gpu-1,O=system:nodes",
		"controller-manager.conf": "CN=system:kube-controller-manager",
		"supervisor.conf":         "CN=localcluster,O=system:masters",
	} {
		login := p.readKubeconfig(t, p.directory.PKI(file))
		certificates, err := certutil.ParseCertsPEM(login.CertData)
		if err != nil {
			t.Fatal(err)
		}
		if subject := certificates[0].Subject.String(); subject != wanted {
			t.Errorf("%s: subject is %s", file, subject)
		}
		if login.Host != "https://172.30.0.1:443" {
			t.Errorf("%s speaks to %s", file, login.Host)
		}
		if _, err := tls.X509KeyPair(login.CertData, login.KeyData); err != nil {
			t.Errorf("%s: key does not belong to the certificate: %v", file, err)
		}
	}
	client := p.readPair(t, "apiserver-kubelet-client").Subject.String()
	if client != "CN=kube-apiserver-kubelet-client,O=system:masters" {
		t.Errorf("the kubelets' client is %s", client)
	}
}

func TestAClockMayBeSetBackALittle(t *testing.T) {
	p := newPKI(t, hostAddress)
	for _, name := range []string{"ca", "apiserver", "apiserver-kubelet-client", "kubelet"} {
		certificate := p.readPair(t, name)
		for _, moment := range []time.Time{time.Now().Add(-4 * time.Minute), time.Now().AddDate(0, 11, 0)} {
			if moment.Before(certificate.NotBefore) || moment.After(certificate.NotAfter) {
				t.Errorf("%s is not valid at %s: from %s until %s", name, moment, certificate.NotBefore, certificate.NotAfter)
			}
		}
	}
}

func TestTheAdministratorsKubeconfigStandsOnItsOwn(t *testing.T) {
	for name, test := range map[string]struct {
		listen *net.TCPAddr
		wanted string
	}{
		"one address":     {hostAddress, "https://192.0.2.7:6443"},
		"all addresses":   {&net.TCPAddr{IP: net.IPv4zero, Port: 6443}, "https://127.0.0.1:6443"},
		"an IPv6 address": {&net.TCPAddr{IP: net.IPv6loopback, Port: 6443}, "https://[::1]:6443"},
		"all of IPv6":     {&net.TCPAddr{IP: net.IPv6unspecified, Port: 6443}, "https://127.0.0.1:6443"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPKI(t, test.listen)
			login := p.readKubeconfig(t, p.directory.Kubeconfig())
			tokens, err := os.ReadFile(p.directory.PKI("tokens.csv"))
			if err != nil {
				t.Fatal(err)
			}
			if login.Host != test.wanted || string(tokens) != login.BearerToken+",admin,admin,system:masters\n" {
				t.Errorf("kubeconfig says %+v, the apiserver knows %q", login, tokens)
			}
		})
	}
}

func TestKeysAreReadableByTheirOwnerOnly(t *testing.T) {
	p := newPKI(t, hostAddress)
	secret := []string{p.directory.Kubeconfig(), p.directory.PKI("tokens.csv"), p.directory.PKI("supervisor.conf")}
	keys, err := filepath.Glob(p.directory.PKI("*.key"))
	if err != nil || len(keys) != 5 {
		t.Fatalf("keys are %q (%v)", keys, err)
	}
	for _, path := range append(secret, keys...) {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}
