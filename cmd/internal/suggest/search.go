package suggest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/replay"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/accesslog"
)

// Config configures a search.
type Config struct {
	Log *accesslog.Kept
	// PerDay is the approximate number of keys to become hot per day, over all rules.
	PerDay float64
	// OnReplay, if not nil, is called before each replay and while it runs, with the number of
	// the replay.
	OnReplay func(number int, done, total int64)
}

// Proposal is the proposal and its measurements.
type Proposal struct {
	Requests    int64
	First, Last time.Time
	Params      []*Param // all parameters, in descending order of requests
	Secret      int      // number of parameters that look secret, and were left out
	LeftOut     int64    // number of requests whose paths were left out
	Full        bool     // whether there were too many values to distinguish
	// Rules is the rules file, or "" if there is nothing to propose.
	Rules string
	// Hot is the number of keys that became hot when the log was replayed with the rules, counted
	// once each day. Days is the length of the log in days, at least one. Most is Hot at the
	// lowest thresholds that are ever proposed.
	Hot  int
	Days float64
	Most int
	// PerDay is Hot for each day of the log.
	PerDay  []int
	Replays int
	// Refused is the number of requests that all limits together refuse when the log is replayed.
	Refused int64
	// Capacities are what the routes were seen to serve, in descending order of requests. They are
	// empty if the log has no durations.
	Capacities []*Capacity
	// CapacityRules is a rules file by Capacities, or "" if there is nothing to propose. Its ids
	// are not in Rules.
	CapacityRules string
}

// maxRules bounds the number of proposed rules.
const maxRules = 20

const (
	day        = 24 * time.Hour
	leastCount = 5  // lowest threshold
	maxReplays = 24 // most replays of a search: each about halves the interval
)

// Find searches rules for a log.
func Find(ctx context.Context, c Config) (*Proposal, error) {
	if !(c.PerDay > 0) {
		return nil, fmt.Errorf("suggest: %v keys a day; must be above 0", c.PerDay)
	}
	s, err := look(func(f func(*accesslog.Entry)) error {
		for e, err := range c.Log.Entries(ctx) {
			if err != nil {
				return err
			}
			f(&e)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	r := &Proposal{
		Requests: s.requests, First: s.first, Last: s.last, Params: s.params(), Secret: len(s.secret),
		LeftOut: s.routes.leftOut, Full: s.full, Days: max(1, float64(s.last.Sub(s.first))/float64(day)),
	}
	r.Capacities = s.capacities()
	search := search{Config: c, first: s.first, result: r}
	for _, p := range r.Params {
		if p.Why != "" {
			continue
		}
		switch {
		case len(search.params) == maxRules:
			p.Why = fmt.Sprintf("%d others have more requests", maxRules)
		case !search.named(p):
			p.Why = "its name or its route cannot be written in a rule"
		default:
			search.params = append(search.params, p)
		}
	}
	if len(search.params) > 0 {
		err = search.run(ctx)
	}
	r.CapacityRules = CapacityRules(r.Capacities, search.ids())
	return r, err
}

// search finds the fraction of each route's peak from which a value is hot. All rules share the
// fraction, so that a busy route has higher thresholds than a quiet one, and a single number
// determines how many keys are hot.
type search struct {
	Config
	first  time.Time
	params []*Param
	result *Proposal
	tried  map[string]trial // results by rules file
}

// trial is the result of one replay.
type trial struct {
	part   float64
	rules  string
	hot    int
	perDay []int
	byRule map[string]int
}

// threshold returns the count from which a value is hot, for a fraction of the peak.
func (p *Param) threshold(part float64) int64 {
	return max(leastCount, int64(math.Ceil(part*float64(p.all))))
}

func (s *search) run(ctx context.Context) error {
	s.tried = make(map[string]trial)
	want := int(math.Round(s.PerDay * s.result.Days))
	want = max(1, want)
	low, err := s.try(ctx, 0) // the lowest thresholds
	if err != nil {
		return err
	}
	s.result.Most = low.hot
	best := low
	high := trial{part: 2} // twice the peak: no value is hot
	part := s.guess(want)
	for low.hot > want && s.result.Replays < maxReplays && !near(best.hot, want) {
		if !(part > low.part && part < high.part) {
			part = (low.part + high.part) / 2
			if low.part > 0 {
				part = math.Sqrt(low.part * high.part)
			}
		}
		if rulesOf(s.params, low.part) == rulesOf(s.params, high.part) || high.part-low.part < 1e-9 {
			break
		}
		t, err := s.try(ctx, part)
		if err != nil {
			return err
		}
		if nearer(t.hot, best.hot, want) {
			best = t
		}
		// While a replay has found only one end, the other is searched close by, as the guess is
		// not far off.
		if t.hot > want {
			if low = t; high.part < 2 {
				part = 0
			} else {
				part *= 1.25
			}
		} else {
			if high = t; low.part > 0 {
				part = 0
			} else {
				part /= 1.25
			}
		}
	}
	if best.hot == 0 {
		best = low // some value should be hot: that is the purpose of the rules
	}
	s.accept(best)
	return s.measure(ctx)
}

// guess returns the fraction of the peak that about want values reach.
func (s *search) guess(want int) float64 {
	low, high := 1e-6, 2.0
	for range 40 {
		part, n := math.Sqrt(low*high), 0
		for _, p := range s.params {
			least := p.threshold(part)
			i, _ := slices.BinarySearchFunc(p.peaks, least, func(peak, least int64) int {
				if peak >= least {
					return -1
				}
				return 1
			})
			n += i
		}
		if n > want {
			low = part
		} else {
			high = part
		}
	}
	return high
}

// near reports whether n is within a tenth of want.
func near(n, want int) bool { return abs(n-want)*10 <= want }

// nearer reports whether n is closer to want than the count than is. The smaller of
// two equally close counts is closer.
func nearer(n, than, want int) bool {
	a, b := abs(n-want), abs(than-want)
	return a < b || a == b && n < than
}

func abs(n int) int { return max(n, -n) }

// accept makes a trial the proposal, without the rules that made no key hot.
func (s *search) accept(t trial) {
	s.result.Hot, s.result.PerDay = t.hot, t.perDay
	s.params = slices.DeleteFunc(s.params, func(p *Param) bool {
		if p.Hot = t.byRule[p.rule]; p.Hot == 0 {
			p.Why, p.Usual, p.Jump = "nothing reaches a threshold by the measure of the other rules", nil, ""
			return true
		}
		n := p.threshold(t.part)
		p.Threshold, p.Limit = rate(n, p.window), rate(max(n, p.steady), p.window)
		return false
	})
}

// try replays the log with thresholds at a fraction of the peak.
func (s *search) try(ctx context.Context, part float64) (trial, error) {
	t := trial{rules: rulesOf(s.params, part), byRule: make(map[string]int), part: part}
	if known, ok := s.tried[t.rules]; ok {
		known.part = part
		return known, nil
	}
	file, err := config.Parse("suggestion", []byte(t.rules))
	if err != nil {
		return t, fmt.Errorf("suggest: %w", err)
	}
	type hotDay struct {
		rule, key string
		day       int
	}
	seen := make(map[hotDay]bool)
	t.perDay = make([]int, int(s.result.Last.Sub(s.first)/day)+1)
	c := replay.Config{Rules: file.Rules, Log: s.Log, OnEvent: func(e replay.Event) {
		if e.Event != "hot" {
			return
		}
		when, err := time.Parse(time.RFC3339Nano, e.Time)
		if err != nil {
			return // impossible: replay writes this format
		}
		d := hotDay{e.Rule, e.Key, min(max(0, int(when.Sub(s.first)/day)), len(t.perDay)-1)}
		if !seen[d] {
			seen[d] = true
			t.hot++
			t.perDay[d.day]++
			t.byRule[e.Rule]++
		}
	}}
	if _, err := s.replay(ctx, c); err != nil {
		return t, err
	}
	s.tried[t.rules] = t
	return t, nil
}

// replay replays the log once, and reports its progress.
func (s *search) replay(ctx context.Context, c replay.Config) (replay.Summary, error) {
	s.result.Replays++
	if number := s.result.Replays; s.OnReplay != nil {
		s.OnReplay(number, 0, s.result.Requests)
		c.OnProgress = func(done, total int64) { s.OnReplay(number, done, total) }
	}
	summary, err := replay.Run(ctx, c)
	if err != nil {
		return summary, errors.Join(err, ctx.Err())
	}
	return summary, nil
}
