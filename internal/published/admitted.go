package published

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// admittedJSON is the number that was admitted, and the milliseconds in which it was: [7,10000].
// If on_hot concerned requests, it also has the number answered from memory, by another's answer
// and alone, and the reason of the last one: [7,10000,320,12,4,"cookie"]. Readers of an earlier
// version ignore the rest.
type admittedJSON struct {
	n, millis int64
	onHot     rules.OnHotCounts
}

const maxReason = 32 // bytes of a reason

func newAdmitted(a *rules.Admitted) admittedJSON {
	of := admittedJSON{a.N, a.Span.Milliseconds(), a.OnHot}
	if !validReason(of.onHot.AloneFor) {
		of.onHot.AloneFor = "" // rather than have readers reject the heartbeat
	}
	return of
}

func (a *admittedJSON) admitted(id uint64) rules.Admitted {
	return rules.Admitted{ID: id, N: a.n, Span: time.Duration(a.millis) * time.Millisecond, OnHot: a.onHot}
}

// MarshalJSON implements json.Marshaler.
func (a admittedJSON) MarshalJSON() ([]byte, error) {
	fields := a.fields()
	if a.onHot == (rules.OnHotCounts{}) {
		return json.Marshal(fields[:2])
	}
	return json.Marshal(fields)
}

// UnmarshalJSON implements json.Unmarshaler.
func (a *admittedJSON) UnmarshalJSON(text []byte) error {
	fields := a.fields()
	return json.Unmarshal(text, &fields)
}

func (a *admittedJSON) fields() [6]any {
	h := &a.onHot
	return [6]any{&a.n, &a.millis, &h.Stored, &h.Joined, &h.Alone, &h.AloneFor}
}

// valid reports whether all fields are within their bounds.
func (a *admittedJSON) valid() bool {
	h := &a.onHot
	return min(a.n, h.Stored, h.Joined, h.Alone) >= 0 && a.millis > 0 && a.millis <= maxMillis && validReason(h.AloneFor)
}

func validReason(s string) bool {
	return len(s) <= maxReason && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz-") == ""
}
