package service

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/loglimit"
)

// doorCertificates holds the files of a door's TLS: its certificate and key, and the certificate
// authorities of its clients. It reads them again when one has changed, so that they can be
// renewed without a restart. Open connections keep the old ones. While the files cannot be used,
// for example because a new certificate's key is not written yet, the last good ones stay in
// force. It is safe for concurrent use.
type doorCertificates struct {
	name string // name of the door
	door config.Door
	log  *slog.Logger

	mu      sync.Mutex // guards the rest
	looked  time.Time  // time of the last comparison of the files
	files   []os.FileInfo
	inForce *tls.Config
	failing loglimit.Outage
}

// lookAgain is how long a changed file may go unnoticed.
const lookAgain = time.Second

// NewTLS returns the TLS of a door, or nil if it has no certificate.
func NewTLS(name string, d *config.Door, log *slog.Logger) (*tls.Config, error) {
	if d.Cert == "" {
		return nil, nil
	}
	c := &doorCertificates{name: name, door: *d, log: log, looked: time.Now()}
	var err error
	if c.files, err = c.stat(); err != nil {
		return nil, err
	}
	if c.inForce, err = c.read(); err != nil {
		return nil, err
	}
	first := c.inForce.Clone()
	first.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.latest(time.Now()), nil }
	return first, nil
}

// latest returns the configuration of new connections.
func (c *doorCertificates) latest(now time.Time) *tls.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.looked) < lookAgain {
		return c.inForce
	}
	c.looked = now
	files, err := c.stat()
	if err == nil && sameFiles(files, c.files) {
		c.failing.End(now)
		return c.inForce
	}
	var next *tls.Config
	if err == nil {
		next, err = c.read()
	}
	if err != nil {
		c.failing.Failed(c.log, time.Minute, now, "the door's certificates cannot be read again: the last ones stay in force", "door", c.name, "err", err)
		return c.inForce
	}
	c.failing.End(now)
	c.files, c.inForce = files, next
	c.log.Info("the door's certificates are read again", "door", c.name, "cert", c.door.Cert)
	return next
}

func (c *doorCertificates) stat() (files []os.FileInfo, err error) {
	for _, path := range []string{c.door.Cert, c.door.Key, c.door.ClientCA} {
		if path == "" {
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		files = append(files, info)
	}
	return files, nil
}

func sameFiles(a, b []os.FileInfo) bool {
	for i := range a {
		if !os.SameFile(a[i], b[i]) || !a[i].ModTime().Equal(b[i].ModTime()) || a[i].Size() != b[i].Size() {
			return false
		}
	}
	return true
}

func (c *doorCertificates) read() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(c.door.Cert, c.door.Key)
	if err != nil {
		return nil, err
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	if c.door.ClientCA == "" {
		return conf, nil
	}
	text, err := os.ReadFile(c.door.ClientCA)
	if err != nil {
		return nil, err
	}
	conf.ClientCAs = x509.NewCertPool()
	if !conf.ClientCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("client_ca: %s has no certificate in PEM", c.door.ClientCA)
	}
	conf.ClientAuth = tls.RequireAndVerifyClientCert
	return conf, nil
}
