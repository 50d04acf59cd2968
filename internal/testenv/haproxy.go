package testenv

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// HAProxy is a real HAProxy that belongs to one test.
type HAProxy struct {
	*Process
	Addr string // where its frontend listens
}

// StartHAProxy starts HAProxy with a file of deploy/, or one by its absolute path, whose frontend listens at "${WEB}".
// environment has the other variables of the file, "NAME=value". The program is the haproxy of
// the PATH, or what HOTPARAM_HAPROXY names; without one the test is skipped (see the package).
func StartHAProxy(tb testing.TB, file string, environment ...string) *HAProxy {
	tb.Helper()
	program := HAProxyPath(tb)
	root, err := moduleRoot()
	if err != nil {
		tb.Fatal(err)
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(root, "deploy", filepath.FromSlash(file))
	}
	addr := loopback(FreePort(tb))
	cmd := exec.Command(program, "-db", "-f", file)
	cmd.Dir = filepath.Dir(file) // for files that it names
	cmd.Env = append(append(os.Environ(), "WEB="+addr), environment...)
	h := &HAProxy{Process: Start(tb, cmd), Addr: addr}
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if conn, err := net.Dial("tcp", addr); err == nil {
			_ = conn.Close()
			return h
		}
		select {
		case <-h.Exited():
			tb.Fatalf("testenv: HAProxy has ended: %s", h.describe())
		default:
		}
		if time.Now().After(end) {
			tb.Fatalf("testenv: HAProxy does not listen at %s: %s", addr, h.describe())
		}
	}
}

// HAProxyPath returns the path of the program. Without one the test is skipped.
func HAProxyPath(tb testing.TB) string {
	tb.Helper()
	for _, name := range []string{os.Getenv("HOTPARAM_HAPROXY"), "haproxy", "/usr/sbin/haproxy"} {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path
		}
	}
	unavailable(tb, "no haproxy in PATH: install it (Debian: apt-get install haproxy)")
	return ""
}
