package testenv

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"path/filepath"
	"testing"
	"time"
)

// CertificateFiles are the PEM files of an authority that belongs to one test, and of the
// certificates that it signed. The server's is for localhost, 127.0.0.1 and other hosts if given,
// and the client's is for a client named "client". Keys are in PKCS #8. The certificates are
// valid for a day, except for a client's that has expired.
type CertificateFiles struct {
	CA                      string
	ServerCert, ServerKey   string
	ClientCert, ClientKey   string
	ExpiredCert, ExpiredKey string
}

// Certificates creates a new authority with certificates for a server and a client.
func Certificates(tb testing.TB, hosts ...string) CertificateFiles {
	tb.Helper()
	dir := tb.TempDir()
	a := authority{tb: tb, dir: dir}
	a.cert, a.key = a.sign(&x509.Certificate{
		Subject:               pkix.Name{CommonName: "testenv authority"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	})
	names, addresses := []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			addresses = append(addresses, ip)
		} else {
			names = append(names, host)
		}
	}
	files := CertificateFiles{CA: a.write("ca.pem", "CERTIFICATE", a.cert.Raw)}
	files.ServerCert, files.ServerKey = a.issue("server", &x509.Certificate{
		DNSNames:    names,
		IPAddresses: addresses,
		// A server of a cluster is also a client of the other servers.
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	files.ClientCert, files.ClientKey = a.issue("client", &x509.Certificate{
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	files.ExpiredCert, files.ExpiredKey = a.issue("expired", &x509.Certificate{
		NotAfter:    time.Now().Add(-time.Minute),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return files
}

// Config returns the configuration of a client that trusts the authority and presents the
// client's certificate.
func (f CertificateFiles) Config(tb testing.TB) *tls.Config {
	tb.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(ReadFile(tb, f.CA)))
	return &tls.Config{RootCAs: roots, Certificates: loadPair(tb, f.ClientCert, f.ClientKey), MinVersion: tls.VersionTLS12}
}

// Expired is like [CertificateFiles.Config], but the client's certificate has expired.
func (f CertificateFiles) Expired(tb testing.TB) *tls.Config {
	tb.Helper()
	c := f.Config(tb)
	c.Certificates = loadPair(tb, f.ExpiredCert, f.ExpiredKey)
	return c
}

// Server returns the configuration of a server that requires a client certificate of the
// authority.
func (f CertificateFiles) Server(tb testing.TB) *tls.Config {
	tb.Helper()
	return &tls.Config{
		Certificates: loadPair(tb, f.ServerCert, f.ServerKey), ClientCAs: f.Config(tb).RootCAs,
		ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12,
	}
}

func loadPair(tb testing.TB, cert, key string) []tls.Certificate {
	tb.Helper()
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		tb.Fatalf("testenv: %v", err)
	}
	return []tls.Certificate{pair}
}

type authority struct {
	tb   testing.TB
	dir  string
	cert *x509.Certificate // nil signs itself
	key  *ecdsa.PrivateKey
}

// issue signs a certificate and writes it and its key to files of that name.
func (a *authority) issue(name string, template *x509.Certificate) (certFile, keyFile string) {
	a.tb.Helper()
	template.Subject = pkix.Name{CommonName: name}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	cert, key := a.sign(template)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.tb.Fatalf("testenv: encode the key of %s: %v", name, err)
	}
	return a.write(name+".pem", "CERTIFICATE", cert.Raw), a.write(name+"-key.pem", "PRIVATE KEY", der)
}

func (a *authority) sign(template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.tb.Fatalf("testenv: make a key: %v", err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore = time.Now().Add(-time.Hour)
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(24 * time.Hour)
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.tb.Fatalf("testenv: sign a certificate: %v", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.tb.Fatalf("testenv: read a certificate: %v", err)
	}
	return cert, key
}

func (a *authority) write(name, kind string, der []byte) string {
	a.tb.Helper()
	path := filepath.Join(a.dir, name)
	WriteFile(a.tb, path, string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})))
	return path
}
