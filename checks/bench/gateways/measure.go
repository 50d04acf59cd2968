package gateways

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/bench/load"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/internal/yardstick"
)

// Config configures [Run]. Only Program is required.
type Config struct {
	Program     string        // hotparam
	Rate        int           // requests per second; default 500
	Connections int           // connections from the load to a gateway; default 32
	Turns       int           // default 5
	Slice       time.Duration // time per row and turn; default 1 s
	Only        []string      // names of gateways; default all
	// Say is called with a line about each step. A nil Say disables it.
	Say func(format string, args ...any)
}

func (c *Config) setDefaults() {
	c.Rate = cmp.Or(c.Rate, 500)
	c.Connections = cmp.Or(c.Connections, 32)
	c.Turns = cmp.Or(c.Turns, 5)
	c.Slice = cmp.Or(c.Slice, time.Second)
	if c.Say == nil {
		c.Say = func(string, ...any) {}
	}
}

func (c *Config) validate() error {
	for _, name := range c.Only {
		if !slices.ContainsFunc(catalogue, func(e catalogued) bool { return e.name == name }) {
			return fmt.Errorf("no gateway %q", name)
		}
	}
	if c.Rate < 0 || c.Connections < 0 || c.Turns < 0 || c.Slice < 0 {
		return errors.New("rate, connections, turns and slice must not be negative")
	}
	return nil
}

// Run measures all gateways and returns the result. A gateway that is not installed is skipped and
// has no rows. Run takes minutes.
func Run(ctx context.Context, c Config) (*Measurement, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	c.setDefaults()
	dir, err := os.MkdirTemp("", "hotparam-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary directory, which the system removes in the end
	r := &Measurement{Machine: yardstick.ThisMachine(ctx), Rate: c.Rate, Connections: c.Connections, Slice: c.Slice, Turns: c.Turns}
	if r.Busy, err = busy(ctx, time.Second); err != nil {
		return nil, err
	}
	err = testenv.Outside(ctx, dir, func(tb testing.TB) {
		c.Say("the guard, its aggregator and Redis")
		s := openSite(tb, c.Program)
		for _, e := range catalogue {
			if len(c.Only) > 0 && !slices.Contains(c.Only, e.name) {
				continue
			}
			g := Gateway{Name: e.name}
			err := testenv.Outside(ctx, dir, func(tb testing.TB) { e.measure(tb, &c, s, &g) })
			switch {
			case errors.Is(err, testenv.ErrSkipped):
				c.Say("%s: %v", e.name, err)
				g = Gateway{Name: e.name, Skipped: err.Error()}
			case err != nil:
				tb.Fatalf("%s: %v", e.name, err)
			}
			r.Gateways = append(r.Gateways, g)
		}
	})
	return r, err
}

// measure starts a gateway in all its variants and measures them in turns.
func (e *catalogued) measure(tb testing.TB, c *Config, s *site, g *Gateway) {
	c.Say("%s: start", e.name)
	variants := e.start(tb, s, g)
	if g.Lacks != "" {
		c.Say("%s: without %s: %s", e.name, g.Lacks, g.LacksWhy)
	}
	if e.version != nil {
		g.Version = version(tb, variants[0].gateway, e.version)
	}
	for i := range variants {
		v := &variants[i]
		if len(v.requests) == 0 {
			v.requests = v.kind.gets()
		}
		v.status = cmp.Or(v.status, v.kind.status())
		v.decides = cmp.Or(v.decides, 1)
		await(tb, v.name+", "+string(v.kind), func() error {
			t, err := v.measure(tb.Context(), &Config{Rate: 200, Connections: 4, Slice: 100 * time.Millisecond})
			if err == nil && t.Wrong+t.Undecided > 0 {
				err = fmt.Errorf("of %d requests %d had another answer, %d were not decided on", t.Requests, t.Wrong, t.Undecided)
			}
			return err
		})
		g.Rows = append(g.Rows, VariantRow{Name: v.name, Kind: v.kind})
	}
	for turn := range c.Turns {
		c.Say("%s: turn %d of %d", e.name, turn+1, c.Turns)
		for i := range variants { // each variant comes first in some turn, and follows each other one in another
			i = (i + turn) % len(variants)
			t, err := variants[i].measure(tb.Context(), c)
			if err != nil {
				tb.Fatalf("%s, %s: %v", variants[i].name, variants[i].kind, err)
			}
			if t.Wrong+t.Undecided > 0 {
				c.Say("%s, %s, %s: of %d requests %d had another answer, %d were not decided on",
					e.name, variants[i].name, variants[i].kind, t.Requests, t.Wrong, t.Undecided)
			}
			g.Rows[i].Turns = append(g.Rows[i].Turns, t)
		}
	}
}

// measure measures the variant once. It discards the first tenth of the requests.
func (v *variant) measure(ctx context.Context, c *Config) (t Turn, err error) {
	client := load.NewClient(answerPatience, c.Connections)
	defer client.Close()
	n := max(1, int(c.Slice.Seconds()*float64(c.Rate)))
	lead := n/10 + 1
	decided, err := v.decided(ctx)
	if err != nil {
		return t, err
	}
	client.Send(ctx, time.Now(), v.due(0, lead, c.Rate))
	before, err := v.times()
	if err != nil {
		return t, err
	}
	samples := client.Send(ctx, time.Now(), v.due(lead, n, c.Rate))
	after, err := v.times()
	if err != nil {
		return t, err
	}
	now, err := v.decided(ctx)
	if err != nil {
		return t, err
	}
	if ctx.Err() != nil {
		return t, ctx.Err()
	}
	t = Turn{
		Requests: n, Wrong: n,
		Gateway: (after[0] - before[0]) / time.Duration(n),
		Service: (after[1] - before[1]) / time.Duration(n),
		Stores:  (after[2] - before[2]) / time.Duration(n),
	}
	var took, late []time.Duration
	for _, s := range samples {
		late = append(late, s.Late)
		if s.Status != 0 {
			took = append(took, s.Took)
		}
		if s.Status == v.status {
			t.Wrong--
		}
	}
	if len(took) == 0 {
		return t, errors.New("no answers")
	}
	slices.Sort(took)
	slices.Sort(late)
	t.P50, t.P99, t.LateP99 = yardstick.Percentile(took, 50), yardstick.Percentile(took, 99), yardstick.Percentile(late, 99)
	if v.service != nil {
		t.Undecided = max(0, (n+lead)*v.decides-(now-decided))
	}
	return t, nil
}

// answerPatience is how long an answer is awaited.
const answerPatience = 5 * time.Second

// due returns n of the variant's requests, from one on in rotation, at a fixed rate.
func (v *variant) due(from, n, perSecond int) (requests []load.Request) {
	for i := range n {
		r := v.requests[(from+i)%len(v.requests)]
		r.Due, r.URL = time.Duration(i)*time.Second/time.Duration(perSecond), "http://"+v.addr+r.URL
		requests = append(requests, r)
	}
	return requests
}

// times returns the processor times of the gateway, the service and its stores.
func (v *variant) times() (times [3]time.Duration, err error) {
	processes := [3][]int{}
	if v.gateway != 0 {
		processes[0] = []int{v.gateway}
	}
	if v.service != nil {
		processes[1], processes[2] = v.service.processes, v.service.stores
	}
	for i, ids := range processes {
		for _, id := range ids {
			took, err := processorTime(id)
			if err != nil {
				return times, err
			}
			times[i] += took
		}
	}
	return times, nil
}

func (v *variant) decided(ctx context.Context) (int, error) {
	if v.service == nil {
		return 0, nil
	}
	return v.service.decided(ctx)
}

var numbers = regexp.MustCompile(`\d+\.\d+\.\d+`)

// version returns the version that a process's program prints.
func version(tb testing.TB, process int, args []string) string {
	tb.Helper()
	said, err := exec.CommandContext(tb.Context(), fmt.Sprintf("/proc/%d/exe", process), args...).CombinedOutput()
	if err != nil {
		tb.Fatalf("version: %v", err)
	}
	return numbers.FindString(string(said))
}
