package published

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// A heartbeat has what on_hot did for a hot key behind what was admitted, where earlier readers
// ignore it. Earlier writers leave it out.
func TestAdmittedInHeartbeat(t *testing.T) {
	plain := Admitted{ID: 0xab, N: 70, Span: 10 * time.Second}
	shared := Admitted{ID: 0xcd, N: 7, Span: 9 * time.Second, OnHot: OnHotCounts{Stored: 320, Joined: 12, Alone: 4, AloneFor: "set-cookie"}}
	counted := Admitted{
		ID: 0xef, N: 7, Span: 8 * time.Second, Lately: Outcomes{Passed: 7, Refused: 93, Waited: 2, Served: 1},
		Since: time.UnixMilli(1732172445123), Outcomes: Outcomes{Passed: 70, Refused: 930, Waited: 20, Served: 10},
	}
	m := Member{Name: "a", Role: RoleInstance, Incarnation: "1", Left: true, Admitted: []Admitted{plain, counted, shared}}
	const want = `{"role":"instance","admitted":{"ab":[70,10000],"cd":[7,9000,320,12,4,"set-cookie"],"ef":[7,8000,0,0,0,"",7,93,2,1,1732172445123,70,930,20,10]},"left":true}`
	slices.SortFunc(m.Admitted, Admitted.Compare)
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
	for _, bad := range []string{"[7]", "[-1,9]", "[1,0]", "[1,9,-1]", "[1,9,1,-1]", "[1,9,1,1,-1]", `[1,9,1,1,1,"a\n"]`, `[1,9,1,1,1,"` + strings.Repeat("a", 33) + `"]`, `["a"]`, "null", "{}",
		`[1,9,1,1,1,"",-1,1,1,1,1,1,1,1,1]`, `[1,9,1,1,1,"",1,1,1,1,-1,1,1,1,1]`, `[1,9,1,1,1,"",1,1,1,1,1,1,1,1,-1]`, `[1,9,1,1,1,"",1,1,1,1,1,1,281474976710657,1,1]`} {
		if got, err := ParseMember("a 1", []byte(`{"role":"instance","admitted":{"ab":`+bad+`}}`)); err == nil {
			t.Errorf("%s is accepted: %+v", bad, got)
		}
	}
	i := slices.IndexFunc(m.Admitted, func(a Admitted) bool { return a.ID == shared.ID })
	m.Admitted[i].OnHot.AloneFor = "Set-Cookie: no"
	if got, err := ParseMember("a 1", EncodeMember(&m)); err != nil || got.Admitted[i].OnHot != (OnHotCounts{Stored: 320, Joined: 12, Alone: 4}) {
		t.Errorf("a reason that is no word: %+v, %v", got, err)
	}
}

// The largest heartbeat is within its bound, with counts of a billion a second.
func TestLargestHeartbeat(t *testing.T) {
	const most = 10_000_000_000
	m := Member{Role: RoleInstance, Problem: strings.Repeat("p", maxProblem), Program: strings.Repeat("v", maxVersion), RulesVersion: strings.Repeat("v", maxVersion)}
	for i := range MaxAdmitted {
		m.Admitted = append(m.Admitted, Admitted{ID: 1<<64 - 1 - uint64(i), N: most, Span: 10 * time.Second,
			OnHot:  OnHotCounts{Stored: most, Joined: most, Alone: most, AloneFor: "request-no-cache"},
			Lately: Outcomes{Passed: most, Refused: most, Waited: most, Served: most}, Since: time.UnixMilli(maxMillis),
			Outcomes: Outcomes{Passed: 1000 * most, Refused: 1000 * most, Waited: 1000 * most, Served: 1000 * most}})
	}
	if n := len(EncodeMember(&m)); n > MaxMember {
		t.Errorf("%d bytes, want at most %d", n, MaxMember)
	} else {
		t.Log(n, "bytes")
	}
}
