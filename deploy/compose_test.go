package deploy_test

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/hotparam/hotparam/config"
)

// composeFile is the part of a Compose file that these tests check.
type composeFile struct {
	Include  []string
	Services map[string]service
	Volumes  map[string]any
}

type service struct {
	Image, Restart string
	NetworkMode    string `yaml:"network_mode"`
	Build          struct{ Context, Dockerfile, Target string }
	Command        []string
	Environment    map[string]string
	Ports, Volumes []string
	DependsOn      map[string]struct{ Condition string } `yaml:"depends_on"`
	Healthcheck    *struct{ Test []string }
	Deploy         struct{ Replicas int }
	ReadOnly       bool     `yaml:"read_only"`
	CapDrop        []string `yaml:"cap_drop"`
}

func readCompose(t *testing.T, path string) composeFile {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file composeFile
	if err := yaml.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	return file
}

var (
	pinned  = regexp.MustCompile(`^[a-z0-9./-]+:v?[0-9]+\.[0-9]+[A-Za-z0-9.-]*$`)
	from    = regexp.MustCompile(`(?m)^(?:FROM(?: --platform=\S+)?|COPY --from=)\s*([^\s]+)`)
	targets = regexp.MustCompile(`(?m)^FROM (?:--platform=\S+ )?\S+ AS (\w+)$`)
)

// checkServices checks what every Compose file must have: pinned images, build stages, mounts and
// dependencies that exist, and ports that do not collide on the host. Paths are relative to dir.
func checkServices(t *testing.T, dir string, file composeFile) {
	t.Helper()
	ports := make(map[string]string)
	for name, s := range file.Services {
		switch {
		case s.Image != "" && !pinned.MatchString(s.Image):
			t.Errorf("%s: the image %q is not pinned", name, s.Image)
		case s.Image == "":
			dockerfile, err := os.ReadFile(filepath.Join(dir, s.Build.Context, s.Build.Dockerfile))
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			stages := targets.FindAllStringSubmatch(string(dockerfile), -1)
			if !slices.ContainsFunc(stages, func(m []string) bool { return m[1] == s.Build.Target }) {
				t.Errorf("%s: %s has no stage %q", name, s.Build.Dockerfile, s.Build.Target)
			}
		}
		for _, volume := range s.Volumes {
			source, _, _ := strings.Cut(volume, ":")
			_, named := file.Volumes[source]
			if _, err := os.Stat(filepath.Join(dir, source)); err != nil && !named {
				t.Errorf("%s mounts %s: %v", name, source, err)
			}
		}
		for _, port := range s.Ports {
			host, _, _ := strings.Cut(strings.TrimPrefix(port, "127.0.0.1:"), ":")
			if other, taken := ports[host]; taken {
				t.Errorf("%s and %s: both take port %s of the host", name, other, host)
			}
			if ports[host] = name; !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("%s: port %s is open to the network", name, port)
			}
		}
		if other, shared := strings.CutPrefix(s.NetworkMode, "service:"); shared && len(s.Ports) > 0 {
			t.Errorf("%s publishes ports, but its network is that of %s", name, other)
		} else if _, there := file.Services[other]; shared && !there {
			t.Errorf("%s uses the network of %s, which does not exist", name, other)
		}
		for other, d := range s.DependsOn {
			dependency, there := file.Services[other]
			switch {
			case !there:
				t.Errorf("%s depends on %s, which does not exist", name, other)
			case d.Condition == "service_healthy" && dependency.Healthcheck == nil:
				t.Errorf("%s waits for %s to be healthy, which has no health check", name, other)
			case d.Condition == "service_completed_successfully" && dependency.Restart != "":
				t.Errorf("%s waits for %s to complete, which restarts", name, other)
			}
		}
	}
}

func TestCompose(t *testing.T) {
	file := readCompose(t, "compose.yaml")
	checkServices(t, ".", file)
	for _, name := range []string{"aggregator", "api-1", "api-2", "api-3"} {
		if s := file.Services[name]; !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) {
			t.Errorf("%s may write to its file system, or has capabilities: %v", name, s.CapDrop)
		}
	}
	for _, name := range []string{"api-1", "api-2", "api-3"} {
		if s := file.Services[name]; len(s.Ports) != 1 || s.Healthcheck == nil {
			t.Errorf("%s: ports %q, health check %v", name, s.Ports, s.Healthcheck)
		}
	}
	if replicas := file.Services["aggregator"].Deploy.Replicas; replicas != 2 {
		t.Errorf("%d aggregators, want 2", replicas)
	}
}

// Aggregators and APIs read the same valid file, and its addresses and topic are those of the
// other services.
func TestComposeSettings(t *testing.T) {
	services := readCompose(t, "compose.yaml").Services
	var mounted []string
	for _, name := range []string{"aggregator", "api-1", "api-2", "api-3"} {
		s := services[name]
		for _, volume := range s.Volumes {
			path, inside, _ := strings.Cut(volume, ":")
			if mounted = append(mounted, path); !slices.Contains(s.Command, strings.TrimSuffix(inside, ":ro")) {
				t.Errorf("%s mounts %s and runs %q", name, volume, s.Command)
			}
		}
	}
	if len(mounted) != 4 || len(slices.Compact(mounted)) != 1 {
		t.Fatalf("they mount %q, want one file each, the same", mounted)
	}
	f, err := config.Load(mounted[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Rules.Validate(); err != nil {
		t.Error(err)
	}
	if f.Aggregator.Source != config.SourceKafka || f.Aggregator.Name != "" {
		t.Errorf("source %q, name %q: want kafka, and none, as all aggregators read it", f.Aggregator.Source, f.Aggregator.Name)
	}
	for _, address := range f.Kafka.Brokers {
		if host, _, _ := net.SplitHostPort(address); services[host].Image == "" {
			t.Errorf("there is no broker %s", address)
		}
	}
	if host, _, _ := strings.Cut(strings.TrimPrefix(f.Aggregator.Redis.URL, "redis://"), ":"); services[host].Image == "" {
		t.Errorf("there is no Redis at %s", f.Aggregator.Redis.URL)
	}
	topic := f.Kafka.Topic
	if topic == "" {
		topic = "hotparam.counters"
	}
	made := services["topic"].Command
	for _, want := range []string{"--topic=" + topic, "--partitions=12", "--config=message.timestamp.type=LogAppendTime"} {
		if !slices.Contains(made, want) {
			t.Errorf("the topic is made by %q, want %s", made, want)
		}
	}
}

func TestDockerfileIsPinned(t *testing.T) {
	data, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	stages := []string{"scratch"}
	for _, m := range targets.FindAllStringSubmatch(string(data), -1) {
		stages = append(stages, m[1])
	}
	found := from.FindAllStringSubmatch(string(data), -1)
	if len(found) < 5 {
		t.Fatalf("found %q", found)
	}
	for _, m := range found {
		if image := m[1]; !slices.Contains(stages, image) && !pinned.MatchString(image) {
			t.Errorf("the image %q is not pinned", image)
		}
	}
	if !regexp.MustCompile(`(?m)^USER [1-9]`).Match(data) {
		t.Error("it runs as root")
	}
}
