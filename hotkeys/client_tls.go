package hotkeys

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// tls adds the settings of c to those of the URL, which are nil without TLS.
func (c ClientConfig) tls(config *tls.Config) (*tls.Config, error) {
	if config == nil {
		if c.CA != "" || c.Cert != "" || c.Key != "" || c.ServerName != "" || c.Insecure {
			return nil, errors.New("TLS: the URL asks for no TLS; want rediss://")
		}
		return nil, nil
	}
	config.MinVersion = tls.VersionTLS12
	config.InsecureSkipVerify = config.InsecureSkipVerify || c.Insecure
	if c.ServerName != "" {
		config.ServerName = c.ServerName
	}
	if c.CA != "" {
		pem, err := os.ReadFile(c.CA)
		if err != nil {
			return nil, fmt.Errorf("CA: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("CA: %s holds no certificate in PEM", c.CA)
		}
	}
	if (c.Cert == "") != (c.Key == "") {
		return nil, errors.New("TLS: Cert and Key go together")
	}
	if c.Cert != "" {
		if _, err := c.certificate(nil); err != nil {
			return nil, err
		}
		config.GetClientCertificate = c.certificate
	}
	return config, nil
}

// certificate returns the client certificate. It is read for each connection, since it may
// have been renewed.
func (c ClientConfig) certificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, fmt.Errorf("client certificate: %w", err)
	}
	return &pair, nil
}

// anyHost clears the expected server name, so that each server's certificate is checked against
// its own host. go-redis would check all against the first host of the URL.
func anyHost(config *tls.Config) {
	if config != nil {
		config.ServerName = ""
	}
}
