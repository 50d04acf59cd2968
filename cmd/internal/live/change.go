package live

import (
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/hotwords"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// changeEvents returns the events of an entry of the stream of hot keys, in order.
func changeEvents(namespace string, entry position, m *redis.XMessage) (published.Push, []Event, error) {
	payload, _ := m.Values["change"].(string)
	change, err := published.ParsePush([]byte(payload))
	if err != nil {
		return published.Push{}, nil, err
	}
	was := published.ParseBefore(text(m.Values["was"]))
	owner := text(m.Values["owner"])
	var events []Event
	add := func(kind byte, i int, e Event) {
		e.position = entry
		e.position.kind, e.position.index = kind, i
		e.ID, e.At, e.Namespace = e.position.String(), change.At, namespace
		events = append(events, e)
	}
	for i := range change.Cool {
		add(coolKind, i, coolEvent(change.At, change.Cool[i], owner, was))
	}
	for i := range change.Hot {
		if h := &change.Hot[i].Hot; !was.Again[h.Key.String()] {
			add(hotKind, i, hotEvent(h))
		}
	}
	return change, events, nil
}

// hotEvent returns the event of a key that became hot.
func hotEvent(h *published.Hot) Event {
	return Event{Type: Hot, Rule: h.Rule, Key: h.Text, By: h.Owner, Counts: counts(h), Limit: h.Limit.String(), Why: whyHot(h), since: h.Since}
}

func whyHot(h *published.Hot) string {
	if h.Hold != nil {
		return hotwords.Hold(h.Hold)
	}
	why := hotwords.Bounds(h)
	if !h.Cause.IsZero() {
		why += ", hot at " + hotwords.Cause(h.Cause)
	}
	if h.Estimated {
		why = "by sampled counts " + why
	}
	switch {
	case h.Spared:
		why += "; usual, so not limited"
	case h.Mode == rules.ModeShadow:
		why += "; in shadow mode, so not limited"
	case h.Limit.IsZero() && h.Mode == rules.ModeWatch:
		why += "; its rule has no limit"
	}
	return why
}

func coolEvent(now time.Time, key rules.Key, owner string, was published.Before) Event {
	e := Event{Type: Cool, Rule: key.Rule, Key: key.Text, By: owner, Why: "hot no longer"}
	before, ok := was.Cool[key.String()]
	if !ok {
		return e
	}
	h := before
	h.Key = key
	e.Counts, e.Limit = counts(&h), h.Limit.String()
	if h.Owner != "" {
		e.By = h.Owner
	}
	e.Why = "hot for " + lasted(now.Sub(h.Since))
	last := hotwords.Bounds(&h)
	switch {
	case h.Hold != nil:
		e.Why += " by its cost"
		last = hotwords.Hold(h.Hold)
	case !h.Cause.IsZero():
		e.Why += " at " + hotwords.Cause(h.Cause)
	}
	if h.Outcomes != nil {
		e.Outcomes = &h.Outcomes.Outcomes
		e.Why += ", " + hotwords.Outcomes(&h)
	}
	e.Why += ", at last " + last
	if !h.Until.After(now) {
		e.Why = "no aggregator renewed it; " + e.Why
	}
	return e
}

// lasted returns a duration as text, in whole seconds from ten seconds on.
func lasted(d time.Duration) string {
	d = max(0, d)
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

func counts(h *published.Hot) *Counts {
	c := &Counts{Rate: h.Rate, Low: h.Low, High: h.High, Unit: h.Cause.Unit}
	if !h.Cause.IsZero() {
		c.Threshold, c.Window = h.Cause.String(), h.Cause.Rate.Per
	}
	return c
}

// changeSize bounds the values that are read from a stream's entry, which may be foreign.
const changeSize = 4 << 20

func text(v any) string {
	s, _ := v.(string)
	if len(s) > changeSize {
		return ""
	}
	return s
}
