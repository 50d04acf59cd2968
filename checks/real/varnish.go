package real

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/hotparam/hotparam/internal/testenv"
)

// Varnish starts Varnish with the configuration in a directory of deploy/gateways and returns when
// it listens. ports replaces ports of back ends in the file, such as "8080" by the application's.
// That of its second socket, 8001, is already replaced. The program is the varnishd of the PATH, with the
// modules of Debian's varnish-modules; without one the test is skipped (see the package).
func Varnish(tb testing.TB, name string, texts, ports map[string]string) *Gateway {
	tb.Helper()
	path := testenv.Program(tb, "Varnish", "varnishd", "/usr/sbin/varnishd")
	return startGateway(tb, "varnishd", func(port int) *exec.Cmd {
		second := testenv.FreePort(tb)
		all := with(texts, `"8001"`, fmt.Sprintf("%q", fmt.Sprint(second)))
		for old, now := range ports {
			all = with(all, fmt.Sprintf("%q", old), fmt.Sprintf("%q", now))
		}
		file := filepath.Join(gatewayFiles(tb, name, all), "hotparam.vcl")
		return exec.Command(path, "-F", "-j", "none", "-n", tb.TempDir(), "-f", file, "-s", "malloc,64m",
			"-a", "client="+testenv.Loopback(port), "-a", "hotparam="+testenv.Loopback(second))
	})
}
