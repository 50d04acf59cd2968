package yardstick

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// Machine describes the measured machine and the date, for a page of results.
type Machine struct{ Date, CPU, Cores, System, Go, Redis string }

// ThisMachine describes this machine at the current date.
func ThisMachine(ctx context.Context) Machine {
	return Machine{
		Date:   time.Now().UTC().Format(time.DateOnly),
		CPU:    cpuName(),
		Cores:  fmt.Sprintf("%d processors", runtime.NumCPU()),
		System: runtime.GOOS + "/" + runtime.GOARCH,
		Go:     strings.Replace(runtime.Version(), "go", "Go ", 1),
		Redis:  redisVersion(ctx),
	}
}

// String returns "2026-11-23: AMD EPYC, 2 processors, …".
func (m Machine) String() string {
	return fmt.Sprintf("%s: %s, %s, %s, %s, %s", m.Date, m.CPU, m.Cores, m.System, m.Go, m.Redis)
}

// cpuName returns the processor's name according to Linux.
func cpuName() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err == nil {
		for line := range strings.Lines(string(info)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				return strings.TrimSpace(value)
			}
		}
	}
	return "an unknown processor"
}

func redisVersion(ctx context.Context) string {
	said, err := exec.CommandContext(ctx, "redis-server", "--version").Output()
	if err == nil {
		for field := range strings.FieldsSeq(string(said)) {
			if v, ok := strings.CutPrefix(field, "v="); ok {
				return "Redis " + v
			}
		}
	}
	return "an unknown Redis"
}
