// Package pki issues the certificates of one cluster.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// lifetime outlives any cluster that is meant to be thrown away.
const lifetime = 10 * 365 * 24 * time.Hour

// Pair is a certificate and its private key, both in PEM.
type Pair struct {
	Certificate []byte
	Key         []byte
}

// Authority is a certificate authority.
type Authority struct {
	Pair
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// Subject says for whom a certificate is issued. A certificate with addresses or names also serves TLS.
type Subject struct {
	User      string
	Groups    []string
	Addresses []net.IP
	Names     []string
}

// NewAuthority creates a self-signed authority.
func NewAuthority(name string) (*Authority, error) {
	template := newTemplate(Subject{User: name})
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage |= x509.KeyUsageCertSign
	pair, key, err := sign(template, template, nil)
	if err != nil {
		return nil, err
	}
	return &Authority{Pair: pair, certificate: template, key: key}, nil
}

// Issue creates a key and a certificate for it.
func (a *Authority) Issue(subject Subject) (Pair, error) {
	template := newTemplate(subject)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(subject.Addresses)+len(subject.Names) > 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	pair, _, err := sign(template, a.certificate, a.key)
	return pair, err
}

// NewKey creates a private key and its public half, both in PEM, for signing ServiceAccount tokens.
func NewKey() (private, public []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	public, err = x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return nil, nil, err
	}
	private, err = x509.MarshalECPrivateKey(key)
	return encode("EC PRIVATE KEY", private), encode("PUBLIC KEY", public), err
}

func newTemplate(subject Subject) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: subject.User, Organization: subject.Groups},
		IPAddresses:  subject.Addresses,
		DNSNames:     subject.Names,
		// A clock that is set back a little must not break a running cluster.
		NotBefore: now.Add(-time.Hour),
		NotAfter:  now.Add(lifetime),
		KeyUsage:  x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
	}
}

func sign(template, parent *x509.Certificate, signer *ecdsa.PrivateKey) (Pair, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, nil, err
	}
	if signer == nil {
		signer = key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return Pair{}, nil, fmt.Errorf("certificate for %s: %w", template.Subject.CommonName, err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	return Pair{Certificate: encode("CERTIFICATE", der), Key: encode("EC PRIVATE KEY", private)}, key, err
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
