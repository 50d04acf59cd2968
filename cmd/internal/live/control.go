package live

import (
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/published"
)

// takeControls adds the events of changes of controls, which are the newest first.
func (t *tail) takeControls(changes []redis.XMessage, b *streamRead) {
	for i := range slices.Backward(changes) {
		entry, err := parseEntryID(changes[i].ID)
		if err != nil || t.begun && entry.compare(t.control) <= 0 {
			continue
		}
		t.control = entry
		change, err := published.ParseControlChange([]byte(text(changes[i].Values["change"])))
		if err != nil {
			t.malformed++
			continue
		}
		c := change.Control
		before, ok := t.known[c.Key]
		if ok && !before.Until.After(c.Since) { // it ended before this one was set
			b.events = append(b.events, t.expired(&before))
		}
		delete(t.known, c.Key)
		if !change.Release && len(t.known) < knownControls {
			t.known[c.Key] = c
		}
		entry.kind = controlKind
		b.events = append(b.events, t.controlEvent(entry, &change))
	}
}

func (t *tail) controlEvent(p position, change *published.ControlChange) Event {
	c := &change.Control
	e := Event{
		ID: p.String(), At: c.Since, Type: Type(c.Action), Namespace: t.namespace, Rule: c.Rule, Key: c.Text,
		Why: c.Why, Until: c.Until, By: author(c), position: p,
	}
	if change.Release {
		e.Type, e.Until = Release, c.Since
		if e.Why == "" {
			e.Why = string(c.Action) + " released"
		}
	}
	return e
}

// expired returns the event of a control that reached its end. No one writes such an event to a
// stream: each reader derives it, with the same ID.
func (t *tail) expired(c *published.Control) Event {
	p := expiry(c)
	return Event{
		ID: p.String(), At: c.Until, Type: Expired, Namespace: t.namespace, Rule: c.Rule, Key: c.Text,
		Why: "the " + string(c.Action) + " reached its end", Until: c.Until, By: author(c), position: p,
	}
}

// author returns who set a control: the user of Redis, which is proven, and the claimed author,
// which is marked as a claim.
func author(c *published.Control) string {
	switch {
	case c.Claimed == "":
		return c.By
	case c.By == "":
		return "claims to be " + c.Claimed
	}
	return c.By + " (claims to be " + c.Claimed + ")"
}
