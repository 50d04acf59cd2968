package real

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

const statsdPackage = "statsd@0.9.0"

// StatsDOptions configures a StatsD. The zero value is a StatsD that forwards its counts to no
// one.
type StatsDOptions struct {
	// Carbon is the host:port that each second's counts are written to.
	Carbon string
	// Modern names counts stats.counters.NAME.count instead of stats_counts.NAME (legacyNamespace
	// is false).
	Modern bool
}

// StatsDServer is the original StatsD, on Node, that belongs to one test. It is configured by
// deploy/statsd. Its methods must be called from the test's own goroutine.
type StatsDServer struct {
	tb               testing.TB
	node, script     string
	dir              string
	options          StatsDOptions
	port, management int
	process          *testenv.Process
	drained          int // number of calls of drain
}

// StatsD starts a StatsD 0.9.0 for the test and returns when it counts packets. It runs on the
// node of the PATH; npm fetches it once into the user's cache directory. Without either the test
// is skipped (see the package).
func StatsD(tb testing.TB, options StatsDOptions) *StatsDServer {
	tb.Helper()
	node, modules := Node(tb, statsdPackage)
	s := &StatsDServer{
		tb: tb, node: node, script: filepath.Join(modules, "statsd", "stats.js"),
		dir: tb.TempDir(), options: options,
	}
	testenv.OnFreePorts(tb, "StatsD", func() error {
		s.port, s.management = testenv.FreePort(tb), testenv.FreePort(tb)
		return s.start(tb.Context())
	})
	return s
}

// Addr returns the host:port of its UDP socket. Restart does not change it.
func (s *StatsDServer) Addr() string { return testenv.Loopback(s.port) }

// Kill kills it (SIGKILL). Its counts since the last second are lost.
func (s *StatsDServer) Kill() { s.process.Kill() }

// Restart kills it, if it runs, and starts it again on the same address. It returns when it
// counts.
func (s *StatsDServer) Restart() {
	s.tb.Helper()
	s.Kill()
	if err := s.start(s.tb.Context()); err != nil {
		s.tb.Fatalf("real: restart StatsD at %s: %v", s.Addr(), err)
	}
}

func (s *StatsDServer) start(ctx context.Context) error {
	values := map[string]string{
		"port":            strconv.Itoa(s.port),
		"mgmt_port":       strconv.Itoa(s.management),
		"legacyNamespace": strconv.FormatBool(!s.options.Modern),
	}
	values["graphiteHost"] = `""` // no host
	if s.options.Carbon != "" {
		host, port, err := net.SplitHostPort(s.options.Carbon)
		if err != nil {
			return fmt.Errorf("StatsDOptions.Carbon: %w", err)
		}
		values["graphiteHost"], values["graphitePort"] = strconv.Quote(host), port
	}
	config := writeDeployed(s.tb, s.dir, "statsd/config.js", values)
	s.process = testenv.Start(s.tb, exec.Command(s.node, s.script, config))
	return s.drain(ctx)
}

// Drain waits until it has read everything that was sent to it. A sender of more packets than the
// buffer of its socket holds (some 100 packets) must wait now and then, or the kernel drops the
// rest.
func (s *StatsDServer) Drain() {
	s.tb.Helper()
	if err := s.drain(s.tb.Context()); err != nil {
		s.tb.Fatalf("real: StatsD at %s: %v", s.Addr(), err)
	}
}

// drain sends a gauge and waits until it has arrived, since its socket keeps the order. The
// answer comes over another port that only this StatsD was given, so it proves that both ports
// are its own.
func (s *StatsDServer) drain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, testenv.Patience)
	defer cancel()
	conn, err := net.Dial("udp", s.Addr())
	if err != nil {
		return err
	}
	defer conn.Close()
	s.drained++
	has := regexp.MustCompile(fmt.Sprintf(`'testenv\.drained': %d\b`, s.drained))
	for {
		// Repeat it, since StatsD drops its gauges each second.
		_, _ = fmt.Fprintf(conn, "testenv.drained:%d|g\n", s.drained) // fails while no server listens
		answer, err := s.manage(ctx, "gauges")
		if has.MatchString(answer) {
			return nil
		}
		select {
		case <-s.process.Exited():
			if !testenv.IsFree(s.port) || !testenv.IsFree(s.management) || strings.Contains(s.process.Stderr(), "EADDRINUSE") {
				return testenv.ErrPortTaken
			}
			return fmt.Errorf("it ended: %s", s.process.Describe())
		case <-ctx.Done():
			return fmt.Errorf("it does not count: %w; %s", errors.Join(ctx.Err(), err), s.process.Describe())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// manage sends a command to the management interface and returns the answer.
func (s *StatsDServer) manage(ctx context.Context, command string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", testenv.Loopback(s.management))
	if err != nil {
		return "", err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return "", err
	}
	if _, err := conn.Write([]byte(command + "\n")); err != nil {
		return "", err
	}
	var answer strings.Builder
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		if lines.Text() == "END" {
			return answer.String(), nil
		}
		answer.WriteString(lines.Text() + "\n")
	}
	return "", errors.New("the answer has no end")
}
