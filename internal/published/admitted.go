package published

import (
	"encoding/json"
	"strings"
	"time"
)

// admittedJSON is the number that was admitted, and the milliseconds in which it was: [7,10000].
// If on_hot concerned requests, it also has the number answered from memory, by another's answer
// and alone, and the reason of the last one: [7,10000,320,12,4,"cookie"]. Then come the outcomes of
// requests in that time (passed, refused, waited, served), when the key became hot in Unix
// milliseconds, and the outcomes since then:
// [7,10000,0,0,0,"",7,93,0,0,1732172445123,70,930,0,0]. Readers of an earlier version ignore the rest.
type admittedJSON struct {
	n, millis    int64
	onHot        OnHotCounts
	lately, ever Outcomes
	since        int64
}

const maxReason = 32 // bytes of a reason

func newAdmitted(a *Admitted) admittedJSON {
	of := admittedJSON{n: a.N, millis: a.Span.Milliseconds(), onHot: a.OnHot, lately: a.Lately, ever: a.Outcomes}
	if of.ever != (Outcomes{}) {
		of.since = a.Since.UnixMilli()
	}
	if !validReason(of.onHot.AloneFor) {
		of.onHot.AloneFor = "" // rather than have readers reject the heartbeat
	}
	return of
}

func (a *admittedJSON) admitted(id uint64) Admitted {
	of := Admitted{ID: id, N: a.n, Span: time.Duration(a.millis) * time.Millisecond, OnHot: a.onHot, Lately: a.lately, Outcomes: a.ever}
	if a.since > 0 {
		of.Since = time.UnixMilli(a.since)
	}
	return of
}

// MarshalJSON implements json.Marshaler.
func (a admittedJSON) MarshalJSON() ([]byte, error) {
	fields := a.fields()
	switch {
	case a.ever != Outcomes{}:
		return json.Marshal(fields)
	case a.onHot != OnHotCounts{}:
		return json.Marshal(fields[:6])
	}
	return json.Marshal(fields[:2])
}

// UnmarshalJSON implements json.Unmarshaler.
func (a *admittedJSON) UnmarshalJSON(text []byte) error {
	fields := a.fields()
	return json.Unmarshal(text, &fields)
}

func (a *admittedJSON) fields() [15]any {
	h, l, e := &a.onHot, &a.lately, &a.ever
	return [...]any{
		&a.n, &a.millis, &h.Stored, &h.Joined, &h.Alone, &h.AloneFor,
		&l.Passed, &l.Refused, &l.Waited, &l.Served, &a.since, &e.Passed, &e.Refused, &e.Waited, &e.Served,
	}
}

// valid reports whether all fields are within their bounds.
func (a *admittedJSON) valid() bool {
	h := &a.onHot
	return min(a.n, h.Stored, h.Joined, h.Alone, a.since) >= 0 && max(a.millis, a.since) <= maxMillis && a.millis > 0 &&
		validReason(h.AloneFor) && validOutcomes(a.lately) && validOutcomes(a.ever)
}

// maxOutcomes bounds a count of outcomes, so that sums over all members stay far from overflowing.
const maxOutcomes = 1 << 48

func validOutcomes(o Outcomes) bool {
	return min(o.Passed, o.Refused, o.Waited, o.Served) >= 0 && max(o.Passed, o.Refused, o.Waited, o.Served) <= maxOutcomes
}

func validReason(s string) bool {
	return len(s) <= maxReason && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz-") == ""
}
