package published

import (
	"testing"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// A heartbeat has the number of held keys and the start of that time, in fields that earlier
// readers ignore and earlier writers omit.
func TestHeldInHeartbeat(t *testing.T) {
	m := Member{Name: "a", Role: RoleInstance, Held: 12, HeldSince: time.UnixMilli(1_732_172_445_123)}
	const want = `{"role":"instance","held":12,"held_since":1732172445123}`
	if got := string(EncodeMember(&m)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for value, want := range map[string]int64{want: 12, `{"role":"instance"}`: 0} {
		if got, err := ParseMember("a 1", []byte(value)); err != nil || got.Held != want || got.HeldSince.IsZero() != (want == 0) {
			t.Errorf("%s: %+v, %v", value, got, err)
		}
	}
	for _, bad := range []string{`{"role":"instance","held":-1}`, `{"role":"instance","held_since":-1}`, `{"role":"instance","held_since":9999999999999999}`} {
		if _, err := ParseMember("a 1", []byte(bad)); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

// The release of a held key has an action that no control can have.
func TestReleaseOfHeldKey(t *testing.T) {
	at := time.UnixMilli(1_732_172_445_123)
	c := ControlChange{Release: true, Control: Control{Key: rules.Key{Rule: "r", Text: "GET /s?q=1"}, Action: ControlHold, Since: at, Until: at.Add(time.Hour)}}
	const want = `{"type":"release","rule":"r","key":"GET /s?q=1","action":"hold","since":1732172445123,"until":1732176045123,"why":"","by":"","claimed":""}`
	if got := string(EncodeControlChange(&c)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, err := ParseControlChange([]byte(want)); err != nil || got != c {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := ParseControl("r GET /s?q=1", EncodeControl(&c.Control)); err == nil {
		t.Error("a control that holds is accepted")
	}
	c.Release = false
	if _, err := ParseControlChange(EncodeControlChange(&c)); err == nil {
		t.Error("a change that sets a hold is accepted")
	}
}
