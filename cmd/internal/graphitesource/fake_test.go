package graphitesource

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/internal/aggregatortest"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// graphite answers this package's requests as graphite-web 1.1 does, by the clock of the test.
type graphite struct {
	mu       sync.Mutex
	step     int64
	ahead    time.Duration // of its clock
	series   map[string]map[int64]float64
	requests []url.Values
	fault    func(w http.ResponseWriter, r *http.Request) bool // true: it has answered
}

func newGraphite() *graphite {
	return &graphite{step: 1, series: make(map[string]map[int64]float64)}
}

// write writes a point.
func (g *graphite) write(name string, at int64, value float64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.series[name] == nil {
		g.series[name] = make(map[int64]float64)
	}
	g.series[name][at] = value
}

func (g *graphite) breakBy(fault func(w http.ResponseWriter, r *http.Request) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fault = fault
}

// asked returns the targets of the newest request.
func (g *graphite) asked() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.requests[len(g.requests)-1]["target"]
}

var maximumAbove = regexp.MustCompile(`^maximumAbove\((.+),([0-9.]+)\)$`)

func (g *graphite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	g.mu.Lock()
	g.requests = append(g.requests, r.PostForm)
	now, fault := time.Now().Add(g.ahead), g.fault
	g.mu.Unlock()
	w.Header().Set("Date", now.UTC().Format(http.TimeFormat))
	if fault != nil && fault(w, r) {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if r.Method != http.MethodPost || r.URL.Path != "/render" || r.Form.Get("format") != "json" || r.Form.Get("noCache") == "" {
		http.NotFound(w, r)
		return
	}
	from, _ := strconv.ParseInt(strings.Trim(r.Form.Get("from"), "s"), 10, 64)
	if from < 0 {
		from += now.Unix()
	}
	until := now.Unix() / g.step * g.step
	var answers []string
	for _, target := range r.PostForm["target"] {
		pattern, above := target, math.Inf(-1)
		if m := maximumAbove.FindStringSubmatch(target); m != nil {
			pattern = m[1]
			above, _ = strconv.ParseFloat(m[2], 64)
		}
		for _, name := range g.find(pattern) {
			var points []string
			highest := math.Inf(-1)
			for at := from/g.step*g.step + g.step; at <= until; at += g.step {
				value, ok := g.series[name][at]
				if !ok {
					points = append(points, fmt.Sprintf("[null, %d]", at))
					continue
				}
				highest = max(highest, value)
				points = append(points, fmt.Sprintf("[%v, %d]", value, at))
			}
			if above < highest || math.IsInf(above, -1) {
				quoted, _ := json.Marshal(name)
				answers = append(answers, fmt.Sprintf(`{"target": %s, "tags": {"name": %s}, "datapoints": [%s]}`, quoted, quoted, strings.Join(points, ", ")))
			}
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, "[%s]", strings.Join(answers, ", "))
}

// find returns the names that match a pattern, as Graphite finds files.
func (g *graphite) find(pattern string) []string {
	var patterns []string
	before, rest, braces := strings.Cut(pattern, "{")
	inside, after, _ := strings.Cut(rest, "}")
	if !braces {
		patterns = []string{pattern}
	}
	for word := range strings.SplitSeq(inside, ",") {
		if braces {
			patterns = append(patterns, before+word+after)
		}
	}
	var found []string
	for name := range g.series {
		for _, p := range patterns {
			// A * stops at a dot as path.Match's does at a slash.
			if ok, _ := path.Match(strings.ReplaceAll(p, ".", "/"), strings.ReplaceAll(name, ".", "/")); ok {
				found = append(found, name)
				break
			}
		}
	}
	slices.Sort(found)
	return found
}

// RoundTrip implements [http.RoundTripper] for a client without a network.
func (g *graphite) RoundTrip(r *http.Request) (*http.Response, error) {
	w, done := httptest.NewRecorder(), make(chan any, 1)
	go func() {
		defer func() { done <- recover() }()
		g.ServeHTTP(w, r)
	}()
	select {
	case <-r.Context().Done():
		<-done // it heeds the context
		return nil, r.Context().Err()
	case p := <-done:
		if err, ok := p.(error); ok {
			return nil, err
		}
		return w.Result(), nil
	}
}

// recorder is a publisher that records the published keys.
type recorder struct {
	mu      sync.Mutex
	hot     map[string]published.Hot
	entered map[string]time.Time // when first
	changes int
	cooled  int // keys
}

func newRecorder() *recorder {
	return &recorder{hot: make(map[string]published.Hot), entered: make(map[string]time.Time)}
}

func (p *recorder) Publish(c published.Change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changes++
	for _, h := range c.Hot {
		p.hot[h.Text] = h
		if _, ok := p.entered[h.Text]; !ok {
			p.entered[h.Text] = time.Now()
		}
	}
	p.cooled += len(c.Cool)
	for _, h := range c.Cool {
		delete(p.hot, h.Text)
	}
}

func (p *recorder) Refresh(_ int, hot []published.Hot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range hot {
		p.hot[h.Text] = h
	}
}

func (p *recorder) Suspects(int, []published.Hot)  {}
func (p *recorder) Instances([]published.Instance) {}

func (p *recorder) get(text string) (published.Hot, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h, ok := p.hot[text]
	return h, ok
}

// all returns the published keys, as another process would find them.
func (p *recorder) all() []published.Hot {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Values(p.hot))
}

func (p *recorder) changed() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changes
}

// log keeps the logged lines.
type log struct {
	mu    sync.Mutex
	lines []string
}

func (l *log) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(line))
	return len(line), nil
}

// count returns how many lines contain all of the parts.
func (l *log) count(parts ...string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
			n++
		}
	}
	return n
}

// hotRule returns a rule for keys that are hot from n within per. They cool as soon as they may.
func hotRule(id string, n int64, per time.Duration) rules.Rule {
	r := aggregatortest.HotRule(id, n, per)
	r.Hot[0].Hold, r.Hot[0].CoolDown = 0, 0
	return r
}

var rulesOf = aggregatortest.Rules

// world is a source in a bubble, with a StatsD and a Graphite of the test.
type world struct {
	*testing.T
	graphite *graphite
	hot      *recorder
	log      *log
	source   *Source
	cfg      Config
}

// newWorld starts a source and stops it at the end of the test. change may set more of its
// configuration.
func newWorld(t *testing.T, change func(*Config), rules ...rules.Rule) *world {
	w := &world{T: t, graphite: newGraphite(), hot: newRecorder(), log: new(log)}
	w.cfg = Config{
		Rules: rulesOf(rules...), Publisher: w.hot, URL: "http://graphite.test", Encoding: wire.Strict,
		Log: slog.New(slog.NewTextHandler(w.log, nil)),
	}
	if change != nil {
		change(&w.cfg)
	}
	s, err := New(w.cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.client.http.Transport = w.graphite
	w.source = s
	return w
}

func (w *world) start() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.source.Run(ctx) }()
	synctest.Wait()
	w.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			w.Errorf("Run told %v", err)
		}
	})
}

// flush waits until StatsD flushes, and writes its heartbeat and the counts of the first rule's
// keys.
func (w *world) flush(counts map[string]float64) int64 {
	w.Helper()
	at := w.tick()
	for text, n := range counts {
		w.graphite.write(w.series(text), at, n)
	}
	w.beat(at)
	return at
}

// tick waits for the next flush.
func (w *world) tick() int64 {
	step := w.source.cfg.Step
	time.Sleep(time.Until(time.Now().Truncate(step).Add(step + 10*time.Millisecond)))
	return time.Now().Truncate(step).Unix()
}

func (w *world) beat(at int64) { w.graphite.write(w.source.cfg.Heartbeat, at, 3) }

func (w *world) series(text string) string {
	return w.source.cfg.series(w.source.job.watches[0].prefix + string(wire.Strict.Append(nil, []byte(text))))
}

// polled waits until the source has asked for the flush.
func (w *world) polled() {
	time.Sleep(w.source.cfg.Offset + 100*time.Millisecond)
	synctest.Wait()
}
