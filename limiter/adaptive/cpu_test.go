package adaptive

import (
	"context"
	"io/fs"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"
)

// cpuFiles are the files in which a machine reports its CPU usage. Tests change them.
type cpuFiles struct {
	mu    sync.Mutex
	files fstest.MapFS
}

func (f *cpuFiles) Open(name string) (fs.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.files.Open(name)
}

func (f *cpuFiles) set(name, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	files := fstest.MapFS{name: {Data: []byte(text)}}
	for other, file := range f.files {
		if other != name {
			files[other] = file
		}
	}
	f.files = files
}

func TestCPU(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &cpuFiles{}
		f.set("proc/stat", "cpu  100 0 100 800 100 0 0 0 50 50\ncpu0 1 2 3 4\n")
		f.set("proc/self/cgroup", "1:name=systemd:/x\n0::/a/b\n")
		f.set("sys/fs/cgroup/a/b/cpu.max", "max 100000\n")
		f.set("sys/fs/cgroup/a/b/cpu.stat", "usage_usec 5\n")
		f.set("sys/fs/cgroup/a/cpu.max", "50000 100000\n") // half a processor
		f.set("sys/fs/cgroup/a/cpu.stat", "nr_periods 1\nusage_usec 1000000\nuser_usec 7\n")
		p, err := newCPU(CPUConfig{Every: time.Second}, f)
		if err != nil {
			t.Fatal(err)
		}
		if !math.IsNaN(p.Usage()) {
			t.Errorf("before Run: %v", p.Usage())
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan error)
		go func() { done <- p.Run(ctx) }()
		for _, tc := range []struct {
			what, file, text string
			want             float64
		}{
			{"nothing is used", "proc/stat", "cpu 100 0 100 1600 100 0 0 0 99 99\n", 0},
			{"the machine works half of the time", "proc/stat", "cpu 200 50 200 1800 300 50 50 50 0 0\n", 0.25},
			{"a cgroup uses all it may", "sys/fs/cgroup/a/cpu.stat", "usage_usec 1500000\n", (0.25 + 1) / 2},
			{"its quota is lifted", "sys/fs/cgroup/a/cpu.max", "max 100000\n", (0.25 + 1) / 4},
		} {
			synctest.Wait()
			f.set(tc.file, tc.text)
			time.Sleep(time.Second)
			synctest.Wait()
			if got := p.Usage(); math.Abs(got-tc.want) > 1e-9 {
				t.Errorf("%s: usage %v, want %v", tc.what, got, tc.want)
			}
		}
		cancel()
		if err := <-done; err != nil || !math.IsNaN(p.Usage()) {
			t.Errorf("after Run: %v, usage %v", err, p.Usage())
		}
		f.set("proc/stat", "nonsense")
		if err := p.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "/proc/stat") {
			t.Errorf("without /proc/stat: %v", err)
		}
	})
}

func TestCPUConfig(t *testing.T) {
	for _, every := range []time.Duration{-1, time.Millisecond, time.Hour} {
		if _, err := NewCPU(CPUConfig{Every: every}); err == nil {
			t.Errorf("Every %v: no error", every)
		}
	}
	if _, err := newCPU(CPUConfig{}, fstest.MapFS{}); err == nil || !strings.Contains(err.Error(), "only Linux") {
		t.Errorf("another system: %v", err)
	}
}

// With the real files, the usage is a share on any machine.
func TestCPUReal(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells how busy it is")
	}
	p, err := NewCPU(CPUConfig{Every: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- p.Run(ctx) }()
	for math.IsNaN(p.Usage()) {
		time.Sleep(time.Millisecond)
	}
	if got := p.Usage(); got < 0 || got > 1 {
		t.Errorf("usage %v", got)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func FuzzCPU(f *testing.F) {
	f.Add("cpu 1 2 3 4 5 6 7 8 9 10\n", "0::/a", "50000 100000", "usage_usec 5\n")
	f.Add("cpu 18446744073709551615 18446744073709551615 1 1", "0::/../..", "max 1", "usage_usec -5")
	f.Add("", "", "0 0", "usage_usec 99999999999999999999")
	f.Fuzz(func(t *testing.T, stat, cgroup, limit, used string) {
		files := fstest.MapFS{
			"proc/stat":                   {Data: []byte(stat)},
			"proc/self/cgroup":            {Data: []byte(cgroup)},
			"sys/fs/cgroup/cpu.max":       {Data: []byte(limit)},
			"sys/fs/cgroup/cpu.stat":      {Data: []byte(used)},
			"sys/fs/cgroup/a/cpu.max":     {Data: []byte(limit)},
			"sys/fs/cgroup/a/cpu.stat":    {Data: []byte(used)},
			"sys/fs/cgroup/a/b/cpu.stat":  {Data: []byte(used)},
			"sys/fs/cgroup/a/b/c/cpu.max": {Data: []byte(limit)},
		}
		p, err := newCPU(CPUConfig{}, files)
		if err != nil {
			return
		}
		r, err := p.read()
		if err != nil {
			t.Fatalf("read once, and then not: %v", err)
		}
		for _, last := range []cpuReading{{}, r} {
			if got := r.since(last); !(got >= 0 && got <= 1) {
				t.Errorf("usage %v", got)
			}
		}
	})
}
