package published

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// A heartbeat has what on_hot did for a hot key behind what was admitted, where earlier readers
// ignore it. Earlier writers leave it out.
func TestAdmittedInHeartbeat(t *testing.T) {
	plain := rules.Admitted{ID: 0xab, N: 70, Span: 10 * time.Second}
	shared := rules.Admitted{ID: 0xcd, N: 7, Span: 9 * time.Second, OnHot: rules.OnHotCounts{Stored: 320, Joined: 12, Alone: 4, AloneFor: "set-cookie"}}
	m := rules.Member{Name: "a", Role: rules.RoleInstance, Admitted: []rules.Admitted{plain, shared}}
	const want = `{"role":"instance","admitted":{"ab":[70,10000],"cd":[7,9000,320,12,4,"set-cookie"]}}`
	text := EncodeMember(&m)
	if string(text) != want {
		t.Errorf("%s, want %s", text, want)
	}
	if got, err := ParseMember("a 1", text); err != nil || !reflect.DeepEqual(got, m) {
		t.Errorf("%+v, %v", got, err)
	}
	var earlier struct{ Admitted map[string][2]int64 }
	if err := json.Unmarshal(text, &earlier); err != nil || earlier.Admitted["cd"] != [2]int64{7, 9000} {
		t.Errorf("an earlier reader has %v, %v", earlier, err)
	}
	for _, bad := range []string{"[7]", "[-1,9]", "[1,0]", "[1,9,-1]", "[1,9,1,-1]", "[1,9,1,1,-1]", `[1,9,1,1,1,"a\n"]`, `[1,9,1,1,1,"` + strings.Repeat("a", 33) + `"]`, `["a"]`, "null", "{}"} {
		if got, err := ParseMember("a 1", []byte(`{"role":"instance","admitted":{"ab":`+bad+`}}`)); err == nil {
			t.Errorf("%s is accepted: %+v", bad, got)
		}
	}
	m.Admitted[1].OnHot.AloneFor = "Set-Cookie: no"
	if got, err := ParseMember("a 1", EncodeMember(&m)); err != nil || got.Admitted[1].OnHot != (rules.OnHotCounts{Stored: 320, Joined: 12, Alone: 4}) {
		t.Errorf("a reason that is no word: %+v, %v", got, err)
	}
}

// The largest heartbeat is within its bound, with counts of a billion a second.
func TestLargestHeartbeat(t *testing.T) {
	const most = 10_000_000_000
	m := rules.Member{Role: rules.RoleInstance, Problem: strings.Repeat("p", maxProblem), Program: strings.Repeat("v", maxVersion), RulesVersion: strings.Repeat("v", maxVersion)}
	for i := range MaxAdmitted {
		m.Admitted = append(m.Admitted, rules.Admitted{ID: 1<<64 - 1 - uint64(i), N: most, Span: 10 * time.Second,
			OnHot: rules.OnHotCounts{Stored: most, Joined: most, Alone: most, AloneFor: "request-no-cache"}})
	}
	if n := len(EncodeMember(&m)); n > MaxMember {
		t.Errorf("%d bytes, want at most %d", n, MaxMember)
	} else {
		t.Log(n, "bytes")
	}
}
