package real

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

// gatewayFiles copies a directory of deploy/gateways with some addresses replaced, so tests run
// the same files that users get. Each address must occur in one of the files. Otherwise the files
// and the tests could diverge. It returns the directory of the copy.
func gatewayFiles(tb testing.TB, name string, addresses map[string]string) (string, error) {
	tb.Helper()
	root, err := testenv.ModuleRoot()
	if err != nil {
		return "", err
	}
	from, to := filepath.Join(root, "deploy", "gateways", name), tb.TempDir()
	found := make(map[string]bool)
	err = filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var pairs []string
		for old, now := range addresses {
			found[old] = found[old] || strings.Contains(string(text), old)
			pairs = append(pairs, old, now)
		}
		text = []byte(strings.NewReplacer(pairs...).Replace(string(text)))
		return os.WriteFile(filepath.Join(to, entry.Name()), text, 0o600)
	})
	for old := range addresses {
		if err == nil && !found[old] {
			err = fmt.Errorf("deploy/gateways/%s has no %q", name, old)
		}
	}
	return to, err
}

// startGateway calls start with a free port until the gateway listens on it, and returns its
// process and its address.
func startGateway(tb testing.TB, name string, start func(port int) (*testenv.Process, error)) (*testenv.Process, string) {
	tb.Helper()
	for range 5 {
		port := testenv.FreePort(tb)
		p, err := start(port)
		if err != nil {
			tb.Fatalf("real: start %s: %v", name, err)
		}
		err = awaitListening(p, testenv.Loopback(port))
		if err == nil {
			return p, testenv.Loopback(port)
		}
		if !errors.Is(err, testenv.ErrPortTaken) {
			tb.Fatalf("real: start %s: %v", name, err)
		}
	}
	tb.Fatalf("real: start %s: five free ports were taken by other processes before it could bind them", name)
	return nil, ""
}

func awaitListening(p *testenv.Process, addr string) error {
	for end := time.Now().Add(testenv.Patience); ; {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil && !p.HasExited() {
			return conn.Close()
		}
		select {
		case <-p.Exited():
			if portInUse.MatchString(strings.ToLower(p.Stderr())) {
				return testenv.ErrPortTaken
			}
			return fmt.Errorf("it ended: %s", p.Describe())
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(end) {
			return fmt.Errorf("it does not listen: %s", p.Describe())
		}
	}
}
