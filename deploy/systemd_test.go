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

const unitFile = "systemd/hotparam-aggregator.service"

// readUnit returns the directives of the unit's sections: the values of each, in order.
func readUnit(t *testing.T) map[string][]string {
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
	unit := readUnit(t)
	for name, want := range map[string]string{
		"[Service]Type": "notify", "[Service]Restart": "always", "[Service]DynamicUser": "yes", "[Service]ProtectSystem": "strict",
		"[Service]CapabilityBoundingSet": "", "[Service]NoNewPrivileges": "yes", "[Install]WantedBy": "multi-user.target",
	} {
		if got := unit[name]; !slices.Equal(got, []string{want}) {
			t.Errorf("%s=%q, want %q", name, got, want)
		}
	}
	if reload := unit["[Service]ExecReload"]; len(reload) == 0 || reload[len(reload)-1] != "/bin/kill -HUP $MAINPID" {
		t.Errorf("ExecReload=%q", reload)
	}
	if len(unit["[Service]WatchdogSec"]) != 1 {
		t.Error("there is no watchdog")
	}
	memory, limit := bytesOf(t, unit["[Service]MemoryMax"]), bytesOf(t, unit["[Service]Environment"])
	if limit == 0 || limit >= memory {
		t.Errorf("GOMEMLIMIT is %d bytes, MemoryMax %d", limit, memory)
	}
}

// bytesOf is the size in the one value of a directive.
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

// systemd itself finds nothing wrong with the unit, and finds it well shut in.
func TestUnitBySystemd(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd-analyze in PATH: the unit is only parsed")
	}
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

// The daemon tells systemd when it is ready, that it lives, and that it stops.
func TestServiceReports(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes: left out with -short")
	}
	t.Parallel()
	path := filepath.Join(t.TempDir(), "notify")
	systemd, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer systemd.Close()
	// received waits for a message that begins so, of those that come.
	received := func(beginning string) string {
		t.Helper()
		buffer := make([]byte, 4096)
		for deadline := time.Now().Add(30 * time.Second); ; {
			if err := systemd.SetReadDeadline(deadline); err != nil {
				t.Fatal(err)
			}
			n, err := systemd.Read(buffer)
			if err != nil {
				t.Fatalf("waiting for %s: %v", beginning, err)
			}
			if message := string(buffer[:n]); strings.HasPrefix(message, beginning) {
				return message
			}
		}
	}
	redis := testenv.Redis(t)
	file := filepath.Join(t.TempDir(), "hotparam.yaml")
	write(t, file, fmt.Sprintf("namespace: shop\naggregator: {listen: 127.0.0.1:0, http: 127.0.0.1:0, redis: %s}\n%s", redis.URL(), quietRules))
	command := exec.Command(testenv.Binary(t), "aggregator", "--config", file)
	command.Env = append(os.Environ(), "NOTIFY_SOCKET="+path, "WATCHDOG_USEC=900000")
	daemon := testenv.Start(t, command)
	received("READY=1\nSTATUS=")
	for range 3 { // by now it has published, or could
		received("WATCHDOG=1\n")
	}
	if status := received("WATCHDOG=1\n"); !strings.HasSuffix(status, "STATUS=ready") {
		t.Errorf("%q", status)
	}
	daemon.Signal(syscall.SIGHUP)
	received("RELOADING=1\nMONOTONIC_USEC=")
	received("READY=1\n")
	redis.Kill() // which a restart would not mend
	for status := ""; !strings.Contains(status, "STATUS=not ready: cannot publish to Redis"); {
		status = received("WATCHDOG=1\n")
	}
	daemon.Signal(syscall.SIGTERM)
	received("STOPPING=1\n")
	if code := daemon.Wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
