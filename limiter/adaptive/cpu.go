package adaptive

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// CPU measures, on Linux, how busy the processors of this process are. It compares those of the
// machine (/proc/stat) with the share that a cgroup allows the process (cgroup v2, cpu.max),
// and reports the busier. It is an input for [Config].CPU.
type CPU struct {
	files  fs.FS // the root file system
	every  time.Duration
	groups []string // directories of the cgroups with a quota
	usage  atomic.Uint64
}

// CPUConfig configures a [CPU]. The zero value is valid.
type CPUConfig struct {
	// Every is the interval of measurements. Usage is the mean over about twice as long. Zero
	// means 250 ms.
	Every time.Duration
}

// NewCPU returns a CPU. It fails if /proc/stat cannot be read, as on systems other than Linux.
func NewCPU(c CPUConfig) (*CPU, error) { return newCPU(c, os.DirFS("/")) }

func newCPU(c CPUConfig, files fs.FS) (*CPU, error) {
	c.Every = cmp.Or(c.Every, 250*time.Millisecond)
	if c.Every < 10*time.Millisecond || c.Every > time.Minute {
		return nil, fmt.Errorf("adaptive: CPU: Every %v: must be 10ms to 1m", c.Every)
	}
	p := &CPU{files: files, every: c.Every}
	p.usage.Store(math.Float64bits(math.NaN()))
	if _, _, err := p.machineTicks(); err != nil {
		return nil, fmt.Errorf("adaptive: CPU: only Linux is supported: %w", err)
	}
	p.groups = p.limitedGroups()
	return p, nil
}

// Usage returns how busy the processors were lately, from 0 to 1, or NaN until Run has
// measured.
func (p *CPU) Usage() float64 { return math.Float64frombits(p.usage.Load()) }

// Run measures until ctx ends, then returns nil.
func (p *CPU) Run(ctx context.Context) error {
	defer p.usage.Store(math.Float64bits(math.NaN()))
	tick := time.NewTicker(p.every)
	defer tick.Stop()
	last, err := p.read()
	for err == nil {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		var next cpuReading
		if next, err = p.read(); err == nil {
			now := next.since(last)
			if before := p.Usage(); !math.IsNaN(before) {
				now = (now + before) / 2
			}
			p.usage.Store(math.Float64bits(now))
			last = next
		}
	}
	return fmt.Errorf("adaptive: CPU: %w", err)
}

// cpuReading holds the values of all counters.
type cpuReading struct {
	when        time.Time
	busy, total float64           // ticks of the machine
	used        map[string]cpuUse // use of each cgroup
}

// cpuUse holds the seconds that a cgroup has used, and those that it may use in each second.
type cpuUse struct{ used, quota float64 }

func (p *CPU) read() (cpuReading, error) {
	busy, total, err := p.machineTicks()
	if err != nil {
		return cpuReading{}, err
	}
	r := cpuReading{when: time.Now(), busy: busy, total: total, used: make(map[string]cpuUse, len(p.groups))}
	for _, dir := range p.groups {
		used, err := p.usedSeconds(dir)
		if err != nil {
			return cpuReading{}, err
		}
		if quota, ok := p.quota(dir); ok { // it may have been changed or lifted
			r.used[dir] = cpuUse{used, quota}
		}
	}
	return r, nil
}

// since returns how busy the busiest of the machine and the cgroups was since the last reading.
func (r cpuReading) since(last cpuReading) float64 {
	usage := share(r.busy-last.busy, r.total-last.total)
	elapsed := r.when.Sub(last.when).Seconds()
	for dir, now := range r.used {
		if before, ok := last.used[dir]; ok {
			usage = max(usage, share(now.used-before.used, now.quota*elapsed))
		}
	}
	return usage
}

func share(used, total float64) float64 {
	if !(total > 0) {
		return 0
	}
	return min(max(used/total, 0), 1)
}

var errCPUForm = errors.New("not in the form that Linux documents")

// machineTicks returns the ticks that the processors worked, and all ticks, from the first line of
// /proc/stat (proc_stat(5)): user, nice, system, idle, iowait, irq, softirq, steal; the rest
// is included in these.
func (p *CPU) machineTicks() (busy, total float64, err error) {
	text, err := fs.ReadFile(p.files, "proc/stat")
	if err != nil {
		return 0, 0, err
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	fields := strings.Fields(string(line))
	if len(fields) < 5 || fields[0] != "cpu" {
		return 0, 0, fmt.Errorf("/proc/stat: %w", errCPUForm)
	}
	for i, field := range fields[1:min(len(fields), 9)] {
		ticks, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("/proc/stat: %w", err)
		}
		total += float64(ticks)
		if i != 3 && i != 4 {
			busy += float64(ticks)
		}
	}
	return busy, total, nil
}

// limitedGroups returns the cgroups with a quota among the process's own and its parents
// (cgroups(7)).
func (p *CPU) limitedGroups() (dirs []string) {
	const root = "sys/fs/cgroup"
	text, _ := fs.ReadFile(p.files, "proc/self/cgroup") // no such file without cgroups
	for line := range strings.Lines(string(text)) {
		group, ok := strings.CutPrefix(strings.TrimSpace(line), "0::/")
		if !ok {
			continue
		}
		for dir := path.Join(root, group); strings.HasPrefix(dir, root); dir = path.Dir(dir) {
			_, limited := p.quota(dir)
			if _, err := p.usedSeconds(dir); limited && err == nil {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs
}

// quota returns how many processors a cgroup may use, and whether it is limited.
func (p *CPU) quota(dir string) (float64, bool) {
	text, err := fs.ReadFile(p.files, path.Join(dir, "cpu.max"))
	fields := strings.Fields(string(text)) // quota and period in µs, "50000 100000", or "max 100000"
	if err != nil || len(fields) != 2 {
		return 0, false
	}
	quota, err := strconv.ParseUint(fields[0], 10, 64)
	period, err2 := strconv.ParseUint(fields[1], 10, 64)
	if err != nil || err2 != nil || quota == 0 || period == 0 {
		return 0, false
	}
	return float64(quota) / float64(period), true
}

// usedSeconds returns the processor seconds that a cgroup has used.
func (p *CPU) usedSeconds(dir string) (float64, error) {
	name := path.Join(dir, "cpu.stat")
	text, err := fs.ReadFile(p.files, name)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if usec, ok := strings.CutPrefix(line, "usage_usec "); ok {
			n, err := strconv.ParseUint(strings.TrimSpace(usec), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("/%s: %w", name, err)
			}
			return float64(n) / 1e6, nil
		}
	}
	return 0, fmt.Errorf("/%s: %w", name, errCPUForm)
}
