package testenv

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Memory returns the resident memory of the process and its peak, in bytes. Both are 0 if the
// system does not report them or the process has ended.
func (p *Process) Memory() (resident, peak int64) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	for line := range bytes.Lines(status) {
		name, value, _ := strings.Cut(string(line), ":")
		kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch name {
		case "VmRSS":
			resident = kib << 10
		case "VmHWM":
			peak = kib << 10
		}
	}
	return resident, peak
}

// Descriptors returns the number of open descriptors of the process and how many of them are
// sockets. Both are 0 if the system does not report them or the process has ended.
func (p *Process) Descriptors() (open, sockets int) {
	dir := fmt.Sprintf("/proc/%d/fd", p.PID())
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if target, err := os.Readlink(dir + "/" + e.Name()); err == nil && strings.HasPrefix(target, "socket:") {
			sockets++
		}
	}
	return len(entries), sockets
}

// Metric returns the value of a metric in the text format of Prometheus. Its name includes its
// labels as they are printed.
func Metric(text, name string) (float64, error) {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, fmt.Errorf("no metric %s", name)
}
