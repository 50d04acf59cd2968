package real

import (
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

// Gateway is a gateway that belongs to one test.
type Gateway struct {
	*testenv.Process
	Addr string // host:port
}

// startGateway starts the gateway's command for a free port and returns when the gateway listens
// on it.
func startGateway(tb testing.TB, name string, command func(port int) *exec.Cmd) *Gateway {
	tb.Helper()
	g := new(Gateway)
	testenv.OnFreePorts(tb, name, func() error {
		port := testenv.FreePort(tb)
		g.Addr, g.Process = testenv.Loopback(port), testenv.Start(tb, command(port))
		return g.awaitListening()
	})
	return g
}

var portInUse = regexp.MustCompile(`address already in use`)

func (g *Gateway) awaitListening() error {
	for end := time.Now().Add(testenv.Patience); ; {
		conn, err := net.DialTimeout("tcp", g.Addr, time.Second)
		if err == nil && !g.HasExited() {
			return conn.Close()
		}
		select {
		case <-g.Exited():
			if portInUse.MatchString(strings.ToLower(g.Stderr())) {
				return testenv.ErrPortTaken
			}
			return fmt.Errorf("it ended: %s", g.Describe())
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(end) {
			return fmt.Errorf("it does not listen: %s", g.Describe())
		}
	}
}

// gatewayFiles copies a directory of deploy/gateways with some texts replaced, so tests run the
// same files that users get. Each text must occur in one of the files. Otherwise the files and the
// tests could diverge. It returns the directory of the copy.
func gatewayFiles(tb testing.TB, name string, texts map[string]string) string {
	tb.Helper()
	from, to := filepath.Join(testenv.Root(tb), "deploy", "gateways", name), tb.TempDir()
	var pairs []string
	for old, now := range texts {
		pairs = append(pairs, old, now)
	}
	missing := maps.Clone(texts)
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text := testenv.ReadFile(tb, path)
		maps.DeleteFunc(missing, func(old, _ string) bool { return strings.Contains(text, old) })
		testenv.WriteFile(tb, filepath.Join(to, entry.Name()), strings.NewReplacer(pairs...).Replace(text))
		return nil
	})
	if err != nil {
		tb.Fatalf("real: %v", err)
	}
	for old := range missing {
		tb.Fatalf("real: deploy/gateways/%s has no %q", name, old)
	}
	return to
}

// with returns the texts and one more.
func with(texts map[string]string, old, now string) map[string]string {
	all := map[string]string{old: now}
	maps.Copy(all, texts)
	return all
}

var acrossMachines = regexp.MustCompile("(?s)\n## Across machines\n.*?\n```\\w*\n(.*?\n)```\n")

// Across returns the configuration that a page of docs/gateways gives for a guard on another
// machine. It is the block of code below "## Across machines", with the paths of files. The texts
// in replace alternate between an old text and its replacement.
func Across(tb testing.TB, page string, files testenv.CertificateFiles, replace ...string) string {
	tb.Helper()
	found := acrossMachines.FindStringSubmatch(testenv.ReadFile(tb, filepath.Join(testenv.Root(tb), "docs", "gateways", page)))
	if found == nil {
		tb.Fatalf("real: docs/gateways/%s has no block below \"Across machines\"", page)
	}
	replace = append(replace,
		"/etc/hotparam/ca.pem", files.CA, "/etc/hotparam/client.pem", files.ClientCert, "/etc/hotparam/client-key.pem", files.ClientKey)
	return strings.NewReplacer(replace...).Replace(found[1])
}
