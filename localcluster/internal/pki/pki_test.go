package pki

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

func parse(t *testing.T, certificate []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(certificate)
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func newAuthority(t *testing.T) *Authority {
	t.Helper()
	authority, err := NewAuthority("kubernetes")
	if err != nil {
		t.Fatal(err)
	}
	return authority
}

func TestIssuedCertificatesAreGoodForWhatTheirSubjectNeeds(t *testing.T) {
	client := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	server := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for name, test := range map[string]struct {
		subject Subject
		options x509.VerifyOptions
		wanted  bool
	}{
		"a client logs in":                  {Subject{User: "admin"}, x509.VerifyOptions{KeyUsages: client}, true},
		"a client does not serve":           {Subject{User: "admin"}, x509.VerifyOptions{KeyUsages: server}, false},
		"a server serves its name":          {Subject{Names: []string{"kubernetes"}}, x509.VerifyOptions{KeyUsages: server, DNSName: "kubernetes"}, true},
		"a server serves no other name":     {Subject{Names: []string{"kubernetes"}}, x509.VerifyOptions{KeyUsages: server, DNSName: "other"}, false},
		"a server serves its address":       {Subject{Addresses: []net.IP{net.IPv4(10, 96, 0, 1)}}, x509.VerifyOptions{KeyUsages: server, DNSName: "10.96.0.1"}, true},
		"a server serves no other address":  {Subject{Addresses: []net.IP{net.IPv4(10, 96, 0, 1)}}, x509.VerifyOptions{KeyUsages: server, DNSName: "10.96.0.2"}, false},
		"a server may also log in, in turn": {Subject{Names: []string{"gpu-1"}}, x509.VerifyOptions{KeyUsages: client}, true},
	} {
		t.Run(name, func(t *testing.T) {
			authority := newAuthority(t)
			pair, err := authority.Issue(test.subject)
			if err != nil {
				t.Fatal(err)
			}
			test.options.Roots = x509.NewCertPool()
			test.options.Roots.AppendCertsFromPEM(authority.Certificate)
			if _, err := parse(t, pair.Certificate).Verify(test.options); (err == nil) != test.wanted {
				t.Errorf("verify: %v, wanted success: %t", err, test.wanted)
			}
			if _, err := tls.X509KeyPair(pair.Certificate, pair.Key); err != nil {
				t.Errorf("key does not belong to the certificate: %v", err)
			}
		})
	}
}

func TestUsersAndGroupsAreInTheSubject(t *testing.T) {
	pair, err := newAuthority(t).Issue(Subject{User: "system:node:gpu-1", Groups: []string{"system:nodes"}})
	if err != nil {
		t.Fatal(err)
	}
	subject := parse(t, pair.Certificate).Subject
	if subject.CommonName != "system:node:gpu-1" || len(subject.Organization) != 1 || subject.Organization[0] != "system:nodes" {
		t.Errorf("subject is %s", subject)
	}
}

func TestKubeconfigStandsOnItsOwn(t *testing.T) {
	authority := newAuthority(t)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := authority.WriteKubeconfig(path, Login{Server: "https://127.0.0.1:6443", User: "admin", Token: "secret"}); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://127.0.0.1:6443" || config.BearerToken != "secret" || string(config.CAData) != string(authority.Certificate) {
		t.Errorf("kubeconfig says %+v", config)
	}
}
