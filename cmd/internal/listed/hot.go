package listed

import (
	"time"

	"github.com/hotparam/hotparam/internal/admitted"
	"github.com/hotparam/hotparam/internal/hotwords"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// Hot is a hot key. Rate, Low, High, Min, Limit and Burst are in Unit. Low and High are counts
// within Window.
type Hot struct {
	Key  string  `json:"key"`
	Rule string  `json:"rule"`
	Rate float64 `json:"rate"` // per second
	Low  int64   `json:"low"`
	High *int64  `json:"high"` // null if unknown
	// Estimated reports whether part of the count was sampled. Low is then the count that was
	// seen, and Rate an estimate.
	Estimated bool `json:"estimated,omitempty"`
	Cause
	Limit    string      `json:"limit,omitempty"`
	Burst    int64       `json:"burst,omitempty"`
	Mode     rules.Mode  `json:"mode"`
	Scope    rules.Scope `json:"scope,omitempty"`
	Admitted *Admitted   `json:"admitted,omitempty"` // nil if not known
	OnHot    *OnHot      `json:"on_hot,omitempty"`   // nil if on_hot answers none of its requests
	Outcomes *Outcomes   `json:"outcomes,omitempty"` // nil if not known
	Usual    bool        `json:"usual,omitempty"`
	Spared   bool        `json:"spared,omitempty"` // usual, and so not limited
	Since    time.Time   `json:"since"`
	Until    time.Time   `json:"until"`
	Owner    string      `json:"owner"`
	Hold     Hold        `json:"hold,omitzero"` // zero unless the key is hot by its cost
	Top      *Top        `json:"top,omitempty"`
}

// Hold is how a key that is hot by its cost is held, and why. Times are in milliseconds.
type Hold struct {
	Pool    string              `json:"pool"`
	Permits int64               `json:"permits"` // for all held keys of the pool, over all instances
	Stage   published.HoldStage `json:"stage"`   // "trial", "kept", "suspected"
	Share   float64             `json:"share"`   // of the pool's time, when the key was first held
	Each    float64             `json:"each_ms"` // a request of the key, then
	Usual   float64             `json:"usual_ms"`
	Slow    float64             `json:"slow_ms"` // a request of the others, then
	Now     float64             `json:"now_ms"`
	Words   string              `json:"words"` // all of it in one line
}

// HoldOf returns a hold in its output form. It returns the zero Hold for nil.
func HoldOf(h *published.Hold) Hold {
	if h == nil {
		return Hold{}
	}
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return Hold{h.Pool, h.Permits, h.Stage, h.Share, ms(h.Each), ms(h.Usual), ms(h.Slow), ms(h.Now), hotwords.Hold(h)}
}

// Admitted compares the admissions of a hot key by all instances with its limit.
type Admitted struct {
	PerSecond float64 `json:"per_second"`         // in Unit, over the last ten seconds
	AtLeast   bool    `json:"at_least,omitempty"` // some instances do not report
	Allowed   float64 `json:"allowed_per_second"` // by Limits limits together
	Limits    int     `json:"limits"`             // the number of instances, if each has the limit; else 1
}

// OnHot holds the rates at which on_hot answers a hot key's requests on all instances, over the
// last ten seconds.
type OnHot struct {
	Stored   float64 `json:"from_memory_per_second"`
	Joined   float64 `json:"joined_per_second"` // by the answer to an identical request
	Alone    float64 `json:"alone_per_second"`  // not for sharing: as without on_hot
	AloneFor string  `json:"alone_for,omitempty"`
}

// Outcomes count the requests of a hot key since it became hot, by all instances. They are some
// seconds old.
type Outcomes struct {
	Counts[int64]
	PerSecond Counts[float64] `json:"per_second"`         // over the last ten seconds
	AtLeast   bool            `json:"at_least,omitempty"` // some instances do not report
}

// Counts are the requests of each outcome.
type Counts[N any] struct {
	Passed  N `json:"passed"`
	Refused N `json:"refused"` // in shadow mode, those that would have been refused
	Waited  N `json:"waited"`  // part of Passed
	Served  N `json:"served"`  // answered by on_hot, from memory or by the answer to an identical request
}

// Cause is the threshold that made the key hot. It is empty if unknown, for example in entries
// of an earlier version.
type Cause struct {
	Kind      string  `json:"kind,omitempty"` // "rate", "share", "jump", "top", "cost"
	Threshold string  `json:"threshold,omitempty"`
	Over      string  `json:"over,omitempty"` // "day" for jumps over days; empty for the recent past
	Min       int64   `json:"min,omitempty"`
	Window    float64 `json:"window_seconds,omitempty"`
	Unit      string  `json:"unit,omitempty"`
}

// Top holds the main sources of a hot key's traffic.
type Top struct {
	Routes    []Origin `json:"routes,omitempty"`
	Instances []Origin `json:"instances,omitempty"`
	Callers   []Origin `json:"callers,omitempty"`
	Explains  int      `json:"explains,omitempty"`
}

// Origin is a source of requests, with Low to High of them in the rule's window.
type Origin struct {
	Name string `json:"name"`
	Low  int64  `json:"low"`
	High int64  `json:"high"`
}

// OfHot returns the hot keys in their output form. The result is never nil.
func OfHot(hot []published.Hot, fleet *admitted.Admissions) []Hot {
	keys := make([]Hot, 0, len(hot))
	for i := range hot {
		keys = append(keys, OfOne(&hot[i], fleet.Gauge(&hot[i])))
	}
	return keys
}

// OfOne returns one hot key in its output form.
func OfOne(h *published.Hot, g admitted.Gauge) Hot {
	out := Hot{
		Key: h.Text, Rule: h.Rule, Rate: h.Rate, Low: h.Low, Estimated: h.Estimated, Limit: h.Limit.String(), Burst: h.Burst,
		Mode: h.Mode, Scope: h.Scope, Usual: h.Usual, Spared: h.Spared, Since: h.Since.UTC(), Until: h.Until.UTC(), Owner: h.Owner,
		Hold: HoldOf(h.Hold),
	}
	if h.High != published.Unknown {
		high := h.High
		out.High = &high
	}
	if g.Known() {
		out.Admitted = &Admitted{g.PerSecond, g.AtLeast, g.Allowed(), g.Limits}
	}
	if o := g.OnHot; o != (admitted.OnHot{}) {
		out.OnHot = &OnHot{o.Stored, o.Joined, o.Alone, o.AloneFor}
	}
	if o, r := h.Outcomes, g.Rates; o != nil || r != (admitted.Rates{}) {
		out.Outcomes = &Outcomes{PerSecond: Counts[float64](r), AtLeast: g.AtLeast}
		if o != nil {
			out.Outcomes.Counts = Counts[int64](o.Outcomes)
		}
	}
	if c := h.Cause; !c.IsZero() {
		out.Cause = CauseOf(c)
	}
	if t := h.Top; t != nil {
		out.Top = &Top{origins(t.Routes), origins(t.Instances), origins(t.Callers), t.Explains}
	}
	return out
}

// CauseOf returns a threshold in its output form.
func CauseOf(c published.Cause) Cause {
	if c.IsZero() {
		return Cause{}
	}
	least := c.Rate.N
	if c.Kind == rules.Cost {
		least = 0 // it compares with no count
	}
	return Cause{c.Kind.String(), c.String(), c.Over.String(), least, c.Rate.Per.Seconds(), c.Unit.String()}
}

func origins(all []published.Origin) []Origin {
	var out []Origin
	for _, o := range all {
		out = append(out, Origin{o.Name, o.Count - o.Over, o.Count})
	}
	return out
}
