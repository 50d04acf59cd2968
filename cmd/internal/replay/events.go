package replay

import (
	"time"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// Event reports that a key became hot or cooled. For OnRelisted it reports a change in how a hot
// key is listed: "usual" or "unusual"; "spared", a usual key that is no longer limited; or
// "limited", a spared key that is limited again.
type Event struct {
	Event string  `json:"event"` // "hot" or "cool", or one of the changes above
	Key   string  `json:"key"`
	Rule  string  `json:"rule"`
	Time  string  `json:"time"` // RFC 3339, UTC: of the request that crossed the threshold, or when the key cooled
	Rate  float64 `json:"rate"` // Low per second, over the rule's window
	Low   int64   `json:"low"`  // bounds of the count in the window
	High  *int64  `json:"high"` // null if unknown
	// Threshold is the threshold that made the key hot, or the last one that held a cooled key
	// hot. It has the form "200/s", "20%/1m" of the route, "8x/1m" over the baseline, "8x/1m over
	// day" over the baseline of the days before, or "top 3/1m". Low and High are counts of Unit
	// within Window.
	Threshold string  `json:"threshold"`
	Kind      string  `json:"kind"` // "rate", "share", "jump", "top"
	Window    float64 `json:"window_seconds"`
	Unit      string  `json:"unit"` // "requests", "bytes", "ms", "units"

	Cause published.Cause `json:"-"`
}

// Send decodes a packet from the collector's sink.
func (r *replay) Send(packet []byte) (int, error) {
	r.decoder.Packet(packet, r.now, r.intake)
	return len(packet), nil
}

// Close does nothing. With Send it makes r a sender for the sink.
func (r *replay) Close() error { return nil }

// intake passes what the decoder finds to the detector, and records the keys that are counted. It
// embeds the interface, since with the detector's other methods the decoder would not call Count.
type intake struct {
	decode.Handler
	replay *replay
}

// Count implements [decode.Handler].
func (i *intake) Count(c decode.Count) {
	i.replay.record(&c)
	i.Handler.Count(c)
}

// AddOrigin implements [decode.OriginHandler].
func (i *intake) AddOrigin(o decode.OriginCount) {
	if o.Kind == wire.KeyUsage {
		i.replay.record(&decode.Count{Rule: o.Rule, Hash: o.Hash, Text: o.Text})
	}
	i.replay.detector.AddOrigin(o)
}

// record records the key of a count.
func (r *replay) record(c *decode.Count) {
	if base.IsAgain(c.Text) || r.Rules.Rules[c.Rule].Overlaps() && base.IsTotal(c.Text) {
		return // not a key
	}
	id := c.Hash ^ uint64(c.Rule)*0x9e3779b97f4a7c15
	if _, known := r.keys[id]; !known {
		r.keys[id] = struct{}{}
		if r.explainer != nil {
			r.explainer.newKey(rules.Key{Rule: r.Rules.Rules[c.Rule].ID, Text: string(c.Text)})
		}
	}
	if r.explainer != nil {
		r.explainer.count(c)
	}
}

// decided records a decision of the detector. The detector publishes the resulting change next.
func (r *replay) decided(v aggregator.Verdict) {
	r.decidedAt = v.At
	if r.explainer != nil {
		r.explainer.decided(v)
	}
}

// Publish records a change from the detector.
func (r *replay) Publish(change published.Change) {
	r.pending = append(r.pending, change)
	for _, h := range change.Hot {
		r.hot[h.Key] = struct{}{}
		if old, ok := r.listed[h.Key]; ok {
			r.relist(old, h)
		} else {
			r.emitEvent("hot", h, h.Since)
		}
		r.listed[h.Key] = h
	}
	for _, h := range change.Cool {
		delete(r.listed, h.Key)
		r.emitEvent("cool", h, h.Until)
	}
}

// relist reports a change in how a key is listed.
func (r *replay) relist(old, h published.Hot) {
	switch {
	case h.Spared && !old.Spared:
		r.emitEvent("spared", h, r.decidedAt)
	case !h.Spared && old.Spared:
		r.emitEvent("limited", h, r.decidedAt)
	case h.Usual && !old.Usual:
		r.emitEvent("usual", h, r.decidedAt)
	case !h.Usual && old.Usual:
		r.emitEvent("unusual", h, r.decidedAt)
	}
}

// Refresh does nothing: the counts between changes are not used.
func (*replay) Refresh(int, []published.Hot) {}

// Suspects does nothing: there is no fleet whose collectors would send suspects sooner.
func (*replay) Suspects(int, []published.Hot) {}

// Instances does nothing: there is only one.
func (*replay) Instances([]published.Instance) {}

func (r *replay) emitEvent(event string, h published.Hot, t time.Time) {
	if r.reports != nil && (event == "hot" || event == "cool") {
		r.reports.recordEvent(event == "hot", h, t)
	}
	on := r.OnEvent
	if event != "hot" && event != "cool" {
		on = r.OnRelisted
	}
	if on == nil {
		return
	}
	e := Event{Event: event, Key: h.Text, Rule: h.Rule, Time: t.UTC().Format(time.RFC3339Nano), Rate: h.Rate, Low: h.Low,
		Threshold: h.Cause.String(), Kind: h.Cause.Kind.String(), Window: h.Cause.Rate.Per.Seconds(), Unit: h.Cause.Unit.String(), Cause: h.Cause}
	if h.High != published.Unknown {
		e.High = &h.High
	}
	on(e)
}
