package middleware

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/semaphore"
	"github.com/hotparam/hotparam/rules"
)

// ExplainConfig is the state that [Explain] decides by. Rules is required.
type ExplainConfig struct {
	Rules *rules.Rules
	// Hot are the keys that are hot now.
	Hot []published.Hot
	// Controls are the controls in force.
	Controls []published.Control
	// Fit shortens the text of a key to the form that is counted, as Fit of the
	// [collector.Sink] that sends the counts does. If Fit is nil, texts of up to
	// [rules.MaxText] fit.
	Fit func(text []byte) []byte
	// Options are the options of the serving guard. A ctx: parameter without a [WithParam]
	// has no value.
	Options []Option
}

// Explain returns how a guard decides on req, without side effects on a guard that serves. It
// counts nothing, takes no tokens from it, and makes no remote call: it makes a guard of its
// own, asks it, and drops it. Limits with scope: exact are decided in memory. The body of
// req.HTTP is read up to the bound of the rules, and replaced by one that reads the same.
func Explain(req Request, c ExplainConfig) (Explanation, error) {
	if c.Rules == nil {
		return Explanation{}, errors.New("middleware: explain: ExplainConfig.Rules is missing")
	}
	body, err := holdWhole(&req, c.Rules)
	if err != nil {
		return Explanation{}, fmt.Errorf("middleware: explain: %w", err)
	}
	var explained [2]Explanation
	for i := range explained {
		t := &trace{usedUp: i == 1}
		in := req
		if in.HTTP != nil {
			in.HTTP = req.HTTP.Clone(req.HTTP.Context())
			in.HTTP.Body = body()
		}
		if err := explainOnce(&in, t, &c); err != nil {
			return Explanation{}, err
		}
		explained[i] = t.explanation
	}
	if req.HTTP != nil {
		req.HTTP.Body = body()
	}
	explained[0].Over = explained[1].Decision
	return explained[0], nil
}

// holdWhole reads the body of req up to the maximum that rules may read. It returns a function
// that makes a body which reads the same.
func holdWhole(req *Request, rules *rules.Rules) (func() io.ReadCloser, error) {
	if in := req.http(); in == nil || in.Body == nil || in.Body == http.NoBody {
		return func() io.ReadCloser { return http.NoBody }, nil
	}
	original := req.HTTP.Body
	text, err := io.ReadAll(io.LimitReader(original, rules.Bodies.WithDefaults().Max+1))
	if err != nil {
		return nil, err
	}
	type body struct {
		io.Reader
		io.Closer
	}
	return func() io.ReadCloser { return body{io.MultiReader(bytes.NewReader(text), original), original} }, nil
}

func explainOnce(in *Request, t *trace, c *ExplainConfig) error {
	const maxKeys = 1 << 10
	counts, err := collector.New(collector.Config{Sink: discard{fit: c.Fit}, Rules: c.Rules, MaxKeys: maxKeys})
	if err != nil {
		return err
	}
	backend, err := limiter.NewMemory(limiter.MemoryConfig{MaxKeys: maxKeys})
	if err != nil {
		return err
	}
	opts := append([]Option{unknownParams(c.Rules)}, c.Options...)
	opts = append(opts, WithBackend(backend), WithSemaphore(semaphore.New(semaphore.Config{})), WithoutLocal(), WithoutWaiting(), WithMaxKeys(maxKeys), WithLog(slog.New(slog.DiscardHandler)))
	g, err := New(c.Rules, counts, opts...)
	if err != nil {
		return err
	}
	g.HotSet().Update("", published.Change{Hot: c.Hot})
	g.SetControls(c.Controls)
	g.explain(in, t)
	if n := g.stats.Panics.Load(); n > 0 {
		return errors.New("middleware: explain: the guard, or a function of its options, panicked; such requests pass")
	}
	return nil
}

// explain implements check with a trace.
func (g *Guard) explain(in *Request, t *trace) {
	x := &t.explanation
	func() {
		defer g.failOpen(&x.Decision)
		r := g.newRequest(in, g.routeOf(in), false)
		r.trace = t
		r.applyRules()
		r.finish(&x.Decision)
	}()
	s := g.Stats()
	x.Withheld, x.Absent, x.Unread, x.More = s.Withheld, s.Absent, s.Unread, s.More > 0
}

// unknownParams defines each ctx: parameter that rules name, with an empty value.
func unknownParams(ruleset *rules.Rules) Option {
	return func(o *options) {
		for i := range ruleset.Rules {
			for _, p := range ruleset.Rules[i].Named() {
				if p.Source == rules.Ctx {
					WithParam(p.Name, func(context.Context) string { return "" })(o)
				}
			}
		}
	}
}

// discard is the sink of a collector that does not run.
type discard struct {
	collector.CountsOnly
	fit func([]byte) []byte
}

func (discard) Send(context.Context, collector.Flush, []collector.Count) collector.Sent {
	return collector.Sent{}
}

func (d discard) Fit(text []byte) []byte {
	if d.fit == nil {
		return text
	}
	return d.fit(text)
}

func (discard) Close() error { return nil }
