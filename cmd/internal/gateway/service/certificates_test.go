package service

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/testenv"
)

// copyFile replaces a file's contents, as a renewal does.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to+".new", text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(to+".new", to); err != nil {
		t.Fatal(err)
	}
}

// greets reports whether a server at addr accepts a client. Both have certificates from the
// authority of files.
func greets(t *testing.T, addr string, files testenv.CertificateFiles) bool {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(files.ClientCert, files.ClientKey)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := os.ReadFile(files.CA)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp", addr,
		&tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
	if err != nil {
		return false
	}
	defer conn.Close()
	text, err := io.ReadAll(conn) // the server's alert about the client's certificate arrives here
	return err == nil && string(text) == "hello"
}

// A door's certificate, key and authorities are renewed without a restart. As long as only some of
// the files have been replaced, the old ones stay in force.
func TestDoorCertificatesAreRenewed(t *testing.T) {
	t.Parallel()
	old, renewed := testenv.Certificates(t), testenv.Certificates(t)
	dir := t.TempDir()
	d := config.Door{Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"), ClientCA: filepath.Join(dir, "ca.crt")}
	place := func(files testenv.CertificateFiles) {
		copyFile(t, files.ServerKey, d.Key)
		copyFile(t, files.CA, d.ClientCA)
		copyFile(t, files.ServerCert, d.Cert)
	}
	place(old)
	log := new(testenv.LogBuffer)
	encryption, err := NewTLS("check", &d, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", encryption)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "hello") // fails where the client is refused
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		<-ended
	})
	addr := listener.Addr().String()
	if !greets(t, addr, old) || greets(t, addr, renewed) {
		t.Fatal("want the first authority's client to be taken, and no other")
	}
	await := func(what string, condition func() bool) {
		t.Helper()
		testenv.Eventually(t, what, condition, log)
	}
	copyFile(t, renewed.ServerKey, d.Key) // of another certificate
	await("half a renewal", func() bool {
		return !greets(t, addr, renewed) && strings.Contains(log.String(), "cannot be read again")
	})
	if !greets(t, addr, old) {
		t.Errorf("half a renewal ended the service:\n%s", log)
	}
	place(renewed)
	await("the renewal", func() bool { return greets(t, addr, renewed) })
	if greets(t, addr, old) {
		t.Error("a client of the old authority is still taken")
	}
	if n := strings.Count(log.String(), "cannot be read again"); n != 1 {
		t.Errorf("half a renewal was logged %d times:\n%s", n, log)
	}
}

func TestDoorCertificatesMustBeGood(t *testing.T) {
	files := testenv.Certificates(t)
	for want, d := range map[string]config.Door{
		"no such file":             {Cert: files.ServerCert, Key: files.ServerKey + "x"},
		"does not match":           {Cert: files.ServerCert, Key: files.ClientKey},
		"has no certificate in":    {Cert: files.ServerCert, Key: files.ServerKey, ClientCA: files.ServerKey},
		"no such file or director": {Cert: files.ServerCert, Key: files.ServerKey, ClientCA: files.CA + "x"},
	} {
		if _, err := NewTLS("auth", &d, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if c, err := NewTLS("auth", new(config.Door), nil); c != nil || err != nil {
		t.Errorf("without a certificate: %v, %v", c, err)
	}
}
