package e2e

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// vitals are what a process holds.
type vitals struct{ files, goroutines, megabytes int }

func (g *guardOfAll) vitals() (v vitals) {
	g.t.Helper()
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", g.PID()))
	if err != nil {
		g.t.Skip("only where /proc tells what a process holds: ", err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", g.PID()))
	if err != nil {
		g.t.Fatal(err)
	}
	if _, rest, found := bytes.Cut(status, []byte("VmRSS:")); found {
		kilobytes, _ := strconv.Atoi(string(bytes.Fields(rest)[0]))
		v.megabytes = kilobytes / 1024
	}
	v.files, v.goroutines = len(files), int(g.metric("go_goroutines"))
	return v
}

// Ten thousand connections come to each door in turn, half of which say nothing and half
// nonsense: the guard keeps as many as it may, and says what became of the others; a gateway that
// comes then is answered. When they are gone nothing of them is left.
func TestConnectionsFloodAGuard(t *testing.T) {
	t.Parallel()
	n := 10_000
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err == nil {
		n = min(n, int(files.Cur)*3/4)
	}
	g := startGuardOfAll(t, quickCommands(t).hotparam, guardAlone)
	for _, door := range doorNames {
		if status, err := g.ask(door, "/search?q=bad"); status != 403 {
			t.Fatalf("%s: %d, %v", door, status, err)
		}
	}
	before := g.vitals()
	most := map[string]int64{"rls": 1024, "auth": 1024, "check": 512, "spoe": 1024}
	for _, door := range doorNames {
		begin := time.Now()
		all := make([]*net.TCPConn, 0, n)
		for i := range n {
			c, err := net.Dial("tcp", g.addr(door))
			if err != nil {
				t.Fatalf("%s: connection %d: %v", door, i, err)
			}
			_ = c.(*net.TCPConn).SetLinger(0) // leaves no port behind
			all = append(all, c.(*net.TCPConn))
			if i%2 == 0 {
				_, _ = c.Write([]byte("\x00\x01nonsense\r\n\r\n")) // it may be closed already
			}
		}
		opened := time.Since(begin)
		asked := time.Now()
		if status, err := g.ask(door, "/search?q=bad"); status != 403 {
			t.Errorf("%s: among them a gateway got %d, %v", door, status, err)
		}
		answered := time.Since(asked)
		open := g.metric(fmt.Sprintf("hotparam_guard_connections{door=%q}", door))
		if reserve := int64(16); open > most[door]+reserve {
			t.Errorf("%s: %d connections, want at most %d", door, open, most[door])
		}
		closed := int64(0)
		for _, reason := range []string{"idle", "full", "slow"} {
			closed += g.metric(fmt.Sprintf(`hotparam_guard_closed_connections_total{door=%q,reason=%q}`, door, reason))
		}
		if closed < int64(n)/2-most[door]-1 { // nonsense may have ended by itself before
			t.Errorf("%s: %d connections are counted as closed, of %d", door, closed, n)
		}
		v := g.vitals()
		t.Logf("%s: %d in %v; a gateway is answered within %v; %d stay, %d are counted as closed; %d MB, %d goroutines, %d files",
			door, n, opened.Round(time.Millisecond), answered.Round(time.Millisecond), open, closed, v.megabytes, v.goroutines, v.files)
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
