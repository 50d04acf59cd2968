package kafka

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// Config reads the files and returns the configuration with which a client dials. If ServerName
// is empty, the client sets it to each broker's host.
func (t *TLS) Config() (*tls.Config, error) {
	if err := t.validate(); err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	c := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         t.ServerName,
		InsecureSkipVerify: t.Insecure, //nolint:gosec // asked for by name, for trials
	}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("tls: ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tls: ca: %s has no certificate in PEM form; want lines between -----BEGIN CERTIFICATE----- and -----END CERTIFICATE----- (of a Java key store: keytool -exportcert -rfc)", t.CA)
		}
	}
	if t.Cert != "" {
		pair, err := readPair(t.Cert, t.Key)
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// readPair reads the files one by one: the error of reading both at once does not name the file
// that it concerns.
func readPair(cert, key string) (tls.Certificate, error) {
	certPEM, err := os.ReadFile(cert)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("tls: cert: %w", err)
	}
	keyPEM, err := os.ReadFile(key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("tls: key: %w", err)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("tls: cert %s and key %s do not make a pair in PEM form, the key without a passphrase: %w", cert, key, err)
	}
	return pair, nil
}
