package real

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Memory returns the memory of the largest process that runs a tab of this test's browsers, in bytes.
// Pages that processes share, such as the program's, count in parts.
func (t *Tab) Memory() (most int64) {
	t.tb.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.tb.Skip(err)
	}
	parents := map[int]int{}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			parents[pid] = int(procField(pid, "status", "PPid"))
		}
	}
	for pid := range parents {
		command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if !strings.Contains(string(command), "--type=renderer") {
			continue
		}
		ancestor := pid
		for ancestor > 1 && ancestor != os.Getpid() {
			ancestor = parents[ancestor]
		}
		if ancestor == os.Getpid() {
			most = max(most, procField(pid, "smaps_rollup", "Pss")<<10)
		}
	}
	return most
}

func procField(pid int, file, name string) int64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file)) // it may have ended
	for line := range strings.Lines(string(status)) {
		if value, found := strings.CutPrefix(line, name+":"); found {
			n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return n
		}
	}
	return 0
}
