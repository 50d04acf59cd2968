package claims

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// Matrix selects the cases that Cases returns.
type Matrix struct {
	Seed uint64
	// Quick leaves most cases out and makes the rest small.
	Quick bool
	// Only leaves out the cases without this in their name.
	Only string
	// Data is a folder with traces; missing traces are skipped.
	Data string
}

// networks lists the networks that cases run on.
var networks = []Network{
	{},
	{Most: 200 * time.Millisecond}, // within the lag, out of order
	{Most: 100 * time.Millisecond, Lost: 0.01, Doubled: 0.02}, // and some lost, some twice
	{Most: 900 * time.Millisecond, Lost: 0.001},               // several lags
}

const megabyte = 1 << 20

// Cases returns the cases of the long run. skipped says why others are left out.
func (m *Matrix) Cases() (cases []Case, skipped []string, err error) {
	memories, lines := []int64{megabyte, 4 * megabyte, 16 * megabyte, 64 * megabyte}, []int{0, 500}
	if m.Quick {
		memories = []int64{megabyte, 16 * megabyte}
	}
	// cross adds c with each of the memories, the numbers of lines and some networks.
	cross := func(turn int, c Case, lines []int) {
		for _, memory := range memories {
			for _, lines := range lines {
				others := []Network{networks[0], networks[1+turn%(len(networks)-1)]}
				if m.Quick {
					others = []Network{networks[(turn+turn/4+turn/8)%len(networks)]}
				}
				turn++
				for _, network := range others {
					c.Memory, c.Parts, c.Lines, c.Network, c.Seed = memory, 1+turn%4, lines, network, m.Seed
					cases = append(cases, c)
				}
			}
		}
	}
	for i, g := range m.generatedSources() {
		if strings.Contains(g.name, m.Only) {
			cross(8*i, Case{Name: g.name, Stream: g.stream(), Rules: g.rules, Instances: g.Instances}, lines)
		}
	}
	for i, t := range traces {
		path := filepath.Join(m.Data, t.file)
		name, _, _ := strings.Cut(t.file, ".")
		name += " by " + t.keyBy
		if !strings.Contains(name, m.Only) || m.Quick && t.span == long {
			continue
		}
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			skipped = append(skipped, path+" is not there")
			continue
		}
		stream, err := Trace(path, t.keyBy, traceInstances)
		if err != nil {
			return nil, nil, err
		}
		lines := []int{0, 4}
		if memories = []int64{megabyte, 16 * megabyte}; t.span == long || m.Quick {
			memories = memories[:1]
		}
		cross(8*i, Case{Name: name, Stream: stream, Rules: t.rules, Instances: traceInstances, Keys: 1 << 13}, lines)
	}
	return append(cases, m.singleCases()...), skipped, nil
}

// source is a generated stream and the thresholds for it.
type source struct {
	name string
	StreamSize
	stream func() func(uint64) (EventStream, error)
	rules  []HotRule
}

func (m *Matrix) generatedSources() (all []source) {
	add := func(name string, s StreamSize, stream func(StreamSize) func(uint64) (EventStream, error), rules ...HotRule) {
		if m.Quick {
			s.Rate /= 8
			for i := range rules {
				rules[i] = NewRule(max(2, rules[i].N/8), rules[i].D, rules[i].Hold)
			}
		}
		all = append(all, source{name, s, func() func(uint64) (EventStream, error) { return stream(s) }, rules})
	}
	million := StreamSize{Rate: 1e6, Keys: 1_000_000, Instances: 20, Length: 3 * time.Second}
	for _, c := range []struct {
		exponent float64
		n        int64
	}{{0.8, 500}, {1, 500}, {1.1, 500}, {1.4, 1000}} {
		add(fmt.Sprintf("zipf %.1f", c.exponent), million, func(s StreamSize) func(uint64) (EventStream, error) { return Zipf(s, c.exponent) },
			NewRule(c.n, time.Second, time.Second))
	}
	add("flat and hot", million, func(s StreamSize) func(uint64) (EventStream, error) { return FlatAndHot(s, 60, s.Rate/1000) },
		NewRule(400, time.Second, time.Second))
	add("moving", million, func(s StreamSize) func(uint64) (EventStream, error) { return Moving(s, s.Rate/1000) }, NewRule(400, time.Second, 0))
	add("distinct", million, Distinct, NewRule(200, time.Second, 0))
	add("bursts", StreamSize{Rate: 2e5, Keys: 200_000, Instances: 20, Length: 10 * time.Second},
		func(s StreamSize) func(uint64) (EventStream, error) { return Bursts(s, 1, 60, int64(s.Rate/400)) }, NewRule(400, time.Second, 0))
	add("zipf 1.0, 10 s", StreamSize{Rate: 1e5, Keys: 500_000, Instances: 10, Length: 25 * time.Second},
		func(s StreamSize) func(uint64) (EventStream, error) { return Zipf(s, 1) }, NewRule(1000, 10*time.Second, time.Second))
	add("zipf 1.1, 1 m", StreamSize{Rate: 2e4, Keys: 200_000, Instances: 5, Length: 100 * time.Second},
		func(s StreamSize) func(uint64) (EventStream, error) { return Zipf(s, 1.1) }, NewRule(1500, time.Minute, 5*time.Second))
	add("zipf 1.0, three rules", StreamSize{Rate: 3e4, Keys: 100_000, Instances: 5, Length: 70 * time.Second},
		func(s StreamSize) func(uint64) (EventStream, error) { return Zipf(s, 1) },
		NewRule(60, time.Second, time.Second), NewRule(500, 10*time.Second, time.Second), NewRule(2500, time.Minute, time.Second))
	if !m.Quick {
		add("zipf 1.1, 10 M", StreamSize{Rate: 1e7, Keys: 1_000_000, Instances: 20, Length: 1500 * time.Millisecond},
			func(s StreamSize) func(uint64) (EventStream, error) { return Zipf(s, 1.1) }, NewRule(5000, time.Second, time.Second))
	}
	return all
}

const traceInstances = 4

// replayMeasure says how long it takes to replay a trace, by its events or its duration.
type replayMeasure int

const (
	short  replayMeasure = iota
	middle               // not for tests
	long                 // not for tests or a quick run
)

// traces lists real traces with thresholds that a few to a few hundred keys reach.
var traces = []struct {
	file, keyBy string
	rules       []HotRule
	span        replayMeasure
}{
	{"edgar-2017-06-30.access.log.zst", "cik", []HotRule{NewRule(10, time.Second, time.Second), NewRule(40, 10*time.Second, time.Second)}, short},
	{"edgar-2017-06-30.access.log.zst", "each", []HotRule{NewRule(10, time.Second, 0)}, short},
	{"dns-2018-03-24.access.jsonl.zst", "name", []HotRule{NewRule(10, time.Second, time.Second), NewRule(100, 10*time.Second, time.Second), NewRule(300, time.Minute, time.Second)}, middle},
	{"higgs-2012-07-01.access.log.zst", "user", []HotRule{NewRule(60, time.Minute, 10*time.Second)}, long},
	{"semicomplete-apache_logs.log.zst", "each", []HotRule{NewRule(2, time.Second, 0), NewRule(3, 10*time.Second, 0), NewRule(5, time.Minute, 0)}, middle},
	{"scan-acunetix.log.zst", "each", []HotRule{NewRule(3, time.Second, 0), NewRule(5, 10*time.Second, 0), NewRule(20, time.Minute, time.Second)}, short},
	{"ruetoj-2017-11_12.csv.zst", "name", []HotRule{NewRule(5, time.Minute, 0)}, middle},
	{"mooncake-conversation.jsonl.zst", "hash", []HotRule{NewRule(5, time.Second, time.Second), NewRule(10, 10*time.Second, time.Second), NewRule(100, time.Minute, time.Second)}, long},
	{"cache2k-web07.keys.zst", "id", []HotRule{NewRule(30, time.Second, time.Second)}, short},
	{"cache2k-orm-busy.keys.zst", "id", []HotRule{NewRule(100, time.Second, time.Second), NewRule(700, 10*time.Second, time.Second)}, long},
}

// usual returns a rule with the default exit, hold and cool-down.
func usual(n int64, d time.Duration) HotRule {
	r := NewRule(n, d, rules.DefaultHold)
	r.CoolDown = rules.DefaultCoolDown
	return r
}

// singleCases returns the cases that stand alone.
func (m *Matrix) singleCases() (cases []Case) {
	flood := StreamSize{Rate: 1e6, Instances: 20, Length: time.Minute}
	calm := StreamSize{Rate: 100, Keys: 50, Instances: 5, Length: 10 * time.Minute}
	if m.Quick {
		flood.Rate, flood.Length, calm.Length = 2e5, 5*time.Second, time.Minute
	}
	for _, c := range append(attacks(flood), atThreshold(calm)...) {
		if strings.Contains(c.Name, m.Only) {
			c.Seed = m.Seed
			cases = append(cases, c)
		}
	}
	return cases
}

// attacks returns floods of values that each come once, with 20 hot keys in them.
func attacks(flood StreamSize) (cases []Case) {
	for _, skewed := range []bool{false, true} {
		cases = append(cases, Case{
			Name: map[bool]string{false: "attack, even", true: "attack, zipf"}[skewed], Stream: Flood(flood, 20, 400, skewed), Rules: []HotRule{usual(200, time.Second)}, Instances: flood.Instances,
			Memory: 16 * megabyte, Parts: 2, Lines: 2000, Network: Network{Most: 20 * time.Millisecond}, Within: time.Second, Measure: true,
		})
	}
	return cases
}

// atThreshold returns streams with a key that comes exactly as often as the threshold, or does so
// every other second.
func atThreshold(calm StreamSize) (cases []Case) {
	steady := usual(200, time.Second)
	steady.Changes = 4
	c := Case{Rules: []HotRule{steady}, Instances: calm.Instances, Memory: 16 * megabyte, Parts: 1, Lines: 2000, Network: Network{Most: 20 * time.Millisecond}}
	for _, s := range []struct {
		name   string
		stream func(uint64) (EventStream, error)
	}{
		{"at the threshold, evenly", Steady(calm, 200, false)},
		{"at the threshold, at random", Steady(calm, 200, true)},
		{"square wave of 2 s", Square(calm, 400, 2*time.Second)},
	} {
		c.Name, c.Stream = s.name, s.stream
		cases = append(cases, c)
	}
	return cases
}
