//go:build real

package deploy_test

import (
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/testenv"
)

// composedGateways maps the directory of each gateway that Compose starts to the address of the
// door that it asks.
var composedGateways = map[string]func(*config.Guard) string{
	"envoy":          func(g *config.Guard) string { return g.RLS.Listen },
	"envoy-extauthz": authDoor,
	"nginx":          authDoor,
	"nginx-cache":    authDoor,
	"caddy":          authDoor,
	"traefik":        authDoor,
	"haproxy/lua":    authDoor,
	"haproxy/spoe":   func(g *config.Guard) string { return g.SPOE.Listen },
}

func authDoor(g *config.Guard) string { return g.Auth[0].Listen }

// notComposed lists the files in these directories that Compose does not use.
var notComposed = []string{
	"istio.yaml", "envoy-gateway.yaml", // for Kubernetes
	"failover.yaml", // in place of another file
}

// gatewayServices returns the services of a gateway's compose.yaml, merged with those of base.yaml
// as Compose merges an included file. Paths are relative to the directory deploy/gateways.
func gatewayServices(t *testing.T, dir string) composeFile {
	t.Helper()
	file := readCompose(t, filepath.Join("gateways", dir, "compose.yaml"))
	if len(file.Include) != 1 || filepath.Join(dir, file.Include[0]) != "base.yaml" {
		t.Fatalf("%s includes %q, want base.yaml", dir, file.Include)
	}
	all := readCompose(t, "gateways/base.yaml")
	for name, s := range file.Services {
		if _, twice := all.Services[name]; twice {
			t.Errorf("%s: base.yaml has a service %s, too, which Compose refuses", dir, name)
		}
		for i, volume := range s.Volumes {
			s.Volumes[i] = filepath.ToSlash(filepath.Join(dir, volume))
		}
		all.Services[name] = s
	}
	return all
}

// Compose starts each gateway from the files that the tests of the doors use. Their ports are those
// of the guard and the application.
func TestGatewayCompose(t *testing.T) {
	settings, err := config.Load("gateways/hotparam.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for dir, door := range composedGateways {
		file := gatewayServices(t, dir)
		checkServices(t, "gateways", file)
		gateway := file.Services["gateway"]
		if gateway.NetworkMode != "service:app" || gateway.Image == "" {
			t.Errorf("%s: the image %q in the network %q", dir, gateway.Image, gateway.NetworkMode)
		}
		configuration, mounted := "", []string{"compose.yaml"}
		for _, volume := range gateway.Volumes {
			source, inside, _ := strings.Cut(volume, ":")
			text, err := os.ReadFile(filepath.Join("gateways", source))
			if err != nil {
				t.Error(err)
			}
			configuration += string(text)
			mounted = append(mounted, filepath.Base(source))
			if path, how, _ := strings.Cut(inside, ":"); how != "ro" || filepath.Base(path) != filepath.Base(source) {
				t.Errorf("%s mounts %s", dir, volume)
			}
		}
		for _, addr := range []string{door(&settings.Guard), "127.0.0.1:8080"} {
			if !strings.Contains(configuration, addr) && !strings.Contains(configuration, real.EnvoyAddress(addr)) {
				t.Errorf("%s: no file that is mounted names %s", dir, addr)
			}
		}
		if !strings.Contains(configuration, "8000") {
			t.Errorf("%s does not listen on 8000", dir)
		}
		for name, value := range gateway.Environment { // files use it as ${NAME} or by os.getenv
			if !strings.Contains(configuration, name) {
				t.Errorf("%s: no file uses the variable %s=%s", dir, name, value)
			}
		}
		entries, err := os.ReadDir(filepath.Join("gateways", dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			if name := entry.Name(); !slices.Contains(mounted, name) && !slices.Contains(notComposed, name) {
				t.Errorf("%s: %s is not mounted", dir, name)
			}
		}
	}
	var found []string
	err = filepath.WalkDir("gateways", func(path string, _ fs.DirEntry, err error) error {
		if filepath.Base(path) == "compose.yaml" {
			found = append(found, strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "gateways/"))
		}
		return err
	})
	if want := slices.Sorted(maps.Keys(composedGateways)); err != nil || !slices.Equal(slices.Sorted(slices.Values(found)), want) {
		t.Errorf("%q have a compose.yaml, want %q (%v)", found, want, err)
	}
}

// The guard and the aggregator read the same valid file, its addresses are those of the other
// services, and the program accepts the guard's command line.
func TestGatewayComposeSettings(t *testing.T) {
	file := readCompose(t, "gateways/base.yaml")
	settings, err := config.Load("gateways/hotparam.yaml")
	if err != nil {
		t.Fatal(err)
	}
	app, guard, aggregator := file.Services["app"], file.Services["guard"], file.Services["aggregator"]
	if !slices.Equal(app.Command, []string{"--port=8080"}) || guard.NetworkMode != "service:app" {
		t.Errorf("the application runs with %q, the guard in the network %q", app.Command, guard.NetworkMode)
	}
	_, status, err := net.SplitHostPort(settings.Guard.HTTP)
	for _, port := range []string{"8000", status} {
		if !slices.Contains(app.Ports, "127.0.0.1:"+port+":"+port) {
			t.Errorf("port %s of the namespace is not published (%v)", port, err)
		}
	}
	var hosts []string
	for _, address := range append(settings.StatsD.Addresses, strings.TrimSuffix(strings.TrimPrefix(settings.Aggregator.Redis.URL, "redis://"), "/0")) {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			t.Error(err)
		}
		if host == "aggregator" && !slices.Contains(settings.Aggregator.Listen, "0.0.0.0:"+port) {
			t.Errorf("counts go to %s, the aggregator listens at %q", address, settings.Aggregator.Listen)
		}
		hosts = append(hosts, host)
	}
	if !slices.Equal(hosts, []string{"aggregator", "redis"}) {
		t.Errorf("the file has the hosts %q", hosts)
	}
	for name, s := range map[string]service{"guard": guard, "aggregator": aggregator} {
		if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) {
			t.Errorf("%s may write to its file system, or has capabilities: %v", name, s.CapDrop)
		}
	}
	source, inside, _ := strings.Cut(strings.Join(guard.Volumes, ","), ":")
	args := append(slices.Clone(guard.Command), "--dry-run")
	for i := range args {
		if args[i] == strings.TrimSuffix(inside, ":ro") {
			args[i] = filepath.Join("gateways", source)
		}
	}
	command := exec.CommandContext(t.Context(), testenv.Binary(t), args...)
	command.Env = append(os.Environ(), "HOTPARAM_REDIS="+testenv.Redis(t).URL())
	output, err := command.CombinedOutput()
	if err != nil || !strings.Contains(string(output), "gateways/hotparam.yaml: good, 1 rule") {
		t.Errorf("%q: %v\n%s", args, err, output)
	}
}
