package deploy_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

// unitFiles are the units of all daemons.
var unitFiles = []string{"systemd/hotparam-aggregator.service", "systemd/hotparam-guard.service", "systemd/hotparam-follow.service"}

// operateUnit is the unit of the page that acts. It has no watchdog, since nothing waits for it.
const operateUnit = "systemd/hotparam-operate.service"

// readUnit returns the directives of a unit's sections. A directive has its values in order.
func readUnit(t *testing.T, unitFile string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(unitFile)
	if err != nil {
		t.Fatal(err)
	}
	directives, section := make(map[string][]string), ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		name, value, ok := strings.Cut(line, "=")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "["):
			section = line
		case !ok:
			t.Errorf("%s: %q is no directive", unitFile, line)
		default:
			directives[section+name] = append(directives[section+name], value)
		}
	}
	return directives
}

func TestUnit(t *testing.T) {
	for _, file := range unitFiles {
		unit := readUnit(t, file)
		for name, want := range map[string]string{
			"[Service]Type": "notify", "[Service]Restart": "always", "[Service]DynamicUser": "yes", "[Service]ProtectSystem": "strict",
			"[Service]CapabilityBoundingSet": "", "[Service]NoNewPrivileges": "yes", "[Install]WantedBy": "multi-user.target",
		} {
			if got := unit[name]; !slices.Equal(got, []string{want}) {
				t.Errorf("%s: %s=%q, want %q", file, name, got, want)
			}
		}
		if reload := unit["[Service]ExecReload"]; len(reload) == 0 || reload[len(reload)-1] != "/bin/kill -HUP $MAINPID" {
			t.Errorf("%s: ExecReload=%q", file, reload)
		}
		command := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "hotparam-"), ".service")
		if start := unit["[Service]ExecStart"]; len(start) != 1 || !strings.HasPrefix(start[0], "/usr/local/bin/hotparam "+command+" --config /etc/hotparam/hotparam.yaml") {
			t.Errorf("%s: ExecStart=%q", file, start)
		}
		if len(unit["[Service]WatchdogSec"]) != 1 {
			t.Errorf("%s: there is no watchdog", file)
		}
		memory, limit := bytesOf(t, unit["[Service]MemoryMax"]), bytesOf(t, unit["[Service]Environment"])
		if limit == 0 || limit >= memory {
			t.Errorf("%s: GOMEMLIMIT is %d bytes, MemoryMax %d", file, limit, memory)
		}
	}
	// systemd removes a RuntimeDirectory when its unit stops, so units cannot share one.
	directories := make(map[string]bool)
	for _, file := range unitFiles {
		for _, directory := range readUnit(t, file)["[Service]RuntimeDirectory"] {
			if directories[directory] {
				t.Errorf("%s: RuntimeDirectory=%s is another unit's", file, directory)
			}
			directories[directory] = true
		}
	}
}

// The page that acts has the same few rights, a file with a Redis user of its own, and gets its tokens
// from a file that only root reads.
func TestOperateUnit(t *testing.T) {
	unit, daemon := readUnit(t, operateUnit), readUnit(t, unitFiles[0])
	for name, want := range daemon {
		if strings.Contains(name, "Protect") || strings.Contains(name, "Private") || strings.Contains(name, "Restrict") || strings.Contains(name, "SystemCall") || strings.Contains(name, "Capabilit") || name == "[Service]DynamicUser" {
			if got := unit[name]; !slices.Equal(got, want) {
				t.Errorf("%s=%q, want %q as the aggregator", name, got, want)
			}
		}
	}
	start := strings.Join(unit["[Service]ExecStart"], "\n")
	if want := "/usr/local/bin/hotparam operate --config /etc/hotparam/operate.yaml --tokens /run/credentials/hotparam-operate.service/people $OPTIONS"; start != want {
		t.Errorf("ExecStart=%q, want %q", start, want)
	}
	if got := unit["[Service]LoadCredential"]; !slices.Equal(got, []string{"people:/etc/hotparam/people"}) {
		t.Errorf("LoadCredential=%q", got)
	}
}

// bytesOf returns the size at the end of a directive's only value.
func bytesOf(t *testing.T, values []string) int {
	t.Helper()
	m := regexp.MustCompile(`(\d+)Mi?B?$`).FindStringSubmatch(strings.Join(values, "\n"))
	if m == nil {
		t.Fatalf("no size in %q", values)
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return n << 20
}

// The real systemd accepts the units and rates their exposure as low.
func TestUnitBySystemd(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd-analyze in PATH: the unit is only parsed")
	}
	for _, unitFile := range append(slices.Clone(unitFiles), operateUnit) {
		text, err := os.ReadFile(unitFile)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), filepath.Base(unitFile))
		write(t, file, strings.ReplaceAll(string(text), "/usr/local/bin/hotparam", "/bin/true")) // it has to be there
		output, err := exec.CommandContext(t.Context(), analyze, "verify", file).CombinedOutput()
		if mine := regexp.MustCompile(`(?m)^.*hotparam.*$`).FindString(string(output)); err != nil || mine != "" {
			t.Errorf("verify: %v\n%s", err, output)
		}
		output, err = exec.CommandContext(t.Context(), analyze, "security", "--no-pager", "--offline=true", "--threshold=20", file).CombinedOutput()
		if err != nil {
			t.Errorf("security: %v\n%s", err, output)
		}
	}
}

// systemdSocket is the socket on which systemd receives a daemon's notifications.
type systemdSocket struct {
	t    *testing.T
	path string
	conn *net.UnixConn
}

func listenAsSystemd(t *testing.T) *systemdSocket {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &systemdSocket{t, path, conn}
}

// start starts the program with the environment that systemd gives it.
func (s *systemdSocket) start(args ...string) *testenv.Process {
	s.t.Helper()
	command := exec.Command(testenv.Binary(s.t), args...)
	command.Env = append(os.Environ(), "NOTIFY_SOCKET="+s.path, "WATCHDOG_USEC=900000")
	return testenv.Start(s.t, command)
}

// receive returns the next message that has the prefix. It skips others.
func (s *systemdSocket) receive(prefix string) string {
	s.t.Helper()
	buffer := make([]byte, 4096)
	for deadline := time.Now().Add(30 * time.Second); ; {
		if err := s.conn.SetReadDeadline(deadline); err != nil {
			s.t.Fatal(err)
		}
		n, err := s.conn.Read(buffer)
		if err != nil {
			s.t.Fatalf("waiting for %s: %v", prefix, err)
		}
		if message := string(buffer[:n]); strings.HasPrefix(message, prefix) {
			return message
		}
	}
}

// receiveReady waits until a daemon has reported that it started, and returns the message with its
// status after three more: by then it has reached Redis, if it can.
func (s *systemdSocket) receiveReady() string {
	s.t.Helper()
	s.receive("READY=1\nSTATUS=")
	for range 3 {
		s.receive("WATCHDOG=1\n")
	}
	return s.receive("WATCHDOG=1\n")
}

// reload reloads a daemon, which reports the beginning and the end.
func (s *systemdSocket) reload(daemon *testenv.Process) {
	s.t.Helper()
	daemon.Signal(syscall.SIGHUP)
	s.receive("RELOADING=1\nMONOTONIC_USEC=")
	s.receive("READY=1\n")
}

// stop stops a daemon, which reports that and exits with code 0.
func (s *systemdSocket) stop(daemon *testenv.Process) {
	s.t.Helper()
	daemon.Signal(syscall.SIGTERM)
	s.receive("STOPPING=1\n")
	if code := daemon.Wait(); code != 0 {
		s.t.Errorf("exit code %d", code)
	}
}

// The aggregator notifies systemd when it is ready, alive, not ready, and stopping.
func TestServiceReports(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes: left out with -short")
	}
	t.Parallel()
	systemd := listenAsSystemd(t)
	redis := testenv.Redis(t)
	file := filepath.Join(t.TempDir(), "hotparam.yaml")
	write(t, file, fmt.Sprintf("namespace: shop\naggregator: {listen: 127.0.0.1:0, http: 127.0.0.1:0, redis: %s}\n%s", redis.URL(), quietRules))
	daemon := systemd.start("aggregator", "--config", file)
	if status := systemd.receiveReady(); !strings.HasSuffix(status, "STATUS=ready") {
		t.Errorf("%q", status)
	}
	systemd.reload(daemon)
	redis.Kill() // which a restart would not mend
	for status := ""; !strings.Contains(status, "STATUS=not ready: cannot publish to Redis"); {
		status = systemd.receive("WATCHDOG=1\n")
	}
	systemd.stop(daemon)
}

// The guard and the follower notify systemd as the aggregator does, even without Redis.
func TestOtherServicesReport(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes: left out with -short")
	}
	t.Parallel()
	dir := t.TempDir()
	file, log := filepath.Join(dir, "hotparam.yaml"), filepath.Join(dir, "access.log")
	write(t, file, "namespace: shop\naggregator: {redis: \"redis://127.0.0.1:1\"}\nguard: {http: 127.0.0.1:0, spoe: {listen: \"unix:"+
		filepath.Join(dir, "spoe.sock")+"\"}}\n"+quietRules)
	write(t, log, "")
	for command, rest := range map[string][]string{"guard": nil, "follow": {"--http", "127.0.0.1:0", log}} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			systemd := listenAsSystemd(t)
			daemon := systemd.start(append([]string{command, "--config", file}, rest...)...)
			if status := systemd.receiveReady(); !strings.Contains(status, "STATUS=ready, ") {
				t.Errorf("%q", status)
			}
			systemd.reload(daemon)
			systemd.stop(daemon)
		})
	}
}
