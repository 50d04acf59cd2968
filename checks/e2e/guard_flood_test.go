package e2e

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

// vitals are the resources that a process holds.
type vitals struct{ files, goroutines, megabytes int }

func (g *guardOfAll) vitals() (v vitals) {
	g.f.t.Helper()
	v.files, _ = g.Descriptors()
	if v.files == 0 {
		g.f.t.Skip("only where the system tells what a process holds")
	}
	resident, _ := g.Memory()
	v.megabytes, v.goroutines = int(resident>>20), int(g.count("go_goroutines"))
	return v
}

// toldAs maps each door to the metrics that count excess connections and nonsense.
var toldAs = func() map[string][]string {
	const closed, fault = `closed_connections_total{door=%%q,reason=%q}`, `faults_total{door=%%q,reason=%q}`
	overHTTP := []string{fmt.Sprintf(closed, "idle"), fmt.Sprintf(closed, "full"), fmt.Sprintf(closed, "slow"), fmt.Sprintf(fault, "unreadable")}
	return map[string][]string{
		"auth": overHTTP, "check": overHTTP,
		"rls":  {fmt.Sprintf(closed, "idle"), fmt.Sprintf(closed, "full"), fmt.Sprintf(closed, "slow"), fmt.Sprintf(closed, "invalid")},
		"spoe": {fmt.Sprintf(closed, "idle"), fmt.Sprintf(closed, "full"), fmt.Sprintf(closed, "slow"), fmt.Sprintf(closed, "too_large")},
	}
}()

// Each door in turn gets ten thousand connections: half are silent and half send nonsense. The
// guard keeps as many as configured, counts the others by reason, and still answers a gateway.
// After they are closed, it holds no resources for them.
func TestConnectionsFloodAGuard(t *testing.T) {
	t.Parallel()
	n := 10_000
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err == nil {
		n = min(n, int(files.Cur)*3/4)
	}
	g := startGuardOfAll(t, quickCommands(t).hotparam, guardAlone)
	for _, door := range doorNames {
		if status, err := g.askDoor(door, "/search?q=bad"); status != 403 {
			t.Fatalf("%s: %d, %v", door, status, err)
		}
	}
	before := g.vitals()
	maxConnections := map[string]int64{"rls": 1024, "auth": 1024, "check": 512, "spoe": 1024}
	for _, door := range doorNames {
		begin := time.Now()
		all := make([]*net.TCPConn, 0, n)
		for i := range n {
			c, err := net.Dial("tcp", g.addr(door))
			if err != nil {
				t.Fatalf("%s: connection %d: %v", door, i, err)
			}
			_ = c.(*net.TCPConn).SetLinger(0) // avoids TIME_WAIT
			all = append(all, c.(*net.TCPConn))
			if i%2 == 0 {
				_, _ = c.Write([]byte("\x00\x01nonsense\r\n\r\n")) // it may be closed already
			}
		}
		opened := time.Since(begin)
		asked := time.Now()
		if status, err := g.askDoor(door, "/search?q=bad"); status != 403 {
			t.Errorf("%s: among them a gateway got %d, %v", door, status, err)
		}
		answered := time.Since(asked)
		open := g.count(fmt.Sprintf("hotparam_guard_connections{door=%q}", door))
		if reserve := int64(16); open > maxConnections[door]+reserve {
			t.Errorf("%s: %d connections, want at most %d", door, open, maxConnections[door])
		}
		counted := int64(0) // connections that the metrics count
		for _, reason := range toldAs[door] {
			counted += g.count("hotparam_guard_" + fmt.Sprintf(reason, door))
		}
		if counted < int64(n)-open {
			t.Errorf("%s: of %d connections %d stay, and %d are counted as closed", door, n, open, counted)
		}
		v := g.vitals()
		t.Logf("%s: %d in %v; a gateway is answered within %v; %d stay, %d are counted as closed; %d MB, %d goroutines, %d files",
			door, n, opened.Round(time.Millisecond), answered.Round(time.Millisecond), open, counted, v.megabytes, v.goroutines, v.files)
		const room = 256 // MB
		if v.megabytes > before.megabytes+room {
			t.Errorf("%s: %d MB, and %d before, want at most %d more", door, v.megabytes, before.megabytes, room)
		}
		for _, c := range all {
			_ = c.Close()
		}
		within(t, patience, door+": all connections are gone", func() bool {
			v := g.vitals()
			return v.files <= before.files+8 && v.goroutines <= before.goroutines+16
		})
	}
	t.Logf("%+v before, %+v now", before, g.vitals())
}

// Each door accepts or refuses a path of 1 MiB, 10,000 descriptors and a frame of 1 MiB, and
// counts its refusals.
func TestHugeQuestions(t *testing.T) {
	t.Parallel()
	g := startGuardOfAll(t, commands(t).hotparam, guardAlone)
	huge := "/search?q=" + strings.Repeat("x", 1<<20)
	for door, want := range map[string]int{"rls": 200, "auth": 431, "check": 413} {
		if status, err := g.askDoor(door, huge); status != want {
			t.Errorf("%s: a path of 1 MiB: %d, %v, want %d", door, status, err, want)
		}
	}
	conn, err := dialRLS(g.rls)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	many := rlsRequest("/search?q=bad")
	for range 10_000 {
		many.Descriptors = append(many.Descriptors, many.Descriptors[0])
	}
	answer, err := ratelimit.NewRateLimitServiceClient(conn).ShouldRateLimit(t.Context(), many)
	if err != nil || answer.GetOverallCode() != ratelimit.RateLimitResponse_OVER_LIMIT || len(answer.GetStatuses()) != len(many.Descriptors) {
		t.Errorf("10,000 descriptors: %v, %d statuses, %v", answer.GetOverallCode(), len(answer.GetStatuses()), err)
	}
	frame, err := net.Dial("tcp", g.spoe)
	if err != nil {
		t.Fatal(err)
	}
	defer frame.Close()
	_ = frame.SetDeadline(time.Now().Add(patience))
	if _, err := frame.Write(append(spoeHello(), 0, 0x10, 0, 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, frame); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("spoe: a frame of 1 MiB is waited for")
	}
	for _, metric := range []string{
		`faults_total{door="rls",reason="too_many"}`, `faults_total{door="auth",reason="too_large"}`,
		`faults_total{door="check",reason="too_large"}`, `closed_connections_total{door="spoe",reason="too_large"}`,
	} {
		if n := g.count("hotparam_guard_" + metric); n != 1 {
			t.Errorf("%s %d, want 1", metric, n)
		}
	}
	for _, door := range doorNames {
		if status, err := g.askDoor(door, "/search?q=bad"); status != 403 {
			t.Errorf("%s: afterwards: %d, %v", door, status, err)
		}
	}
}
