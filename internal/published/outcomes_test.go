package published

import (
	"reflect"
	"strings"
	"testing"
)

// The outcomes are a field of their own at the end, which earlier readers ignore. Those out of their
// bounds cost no limit.
func TestOutcomesGolden(t *testing.T) {
	const field = `,"outcomes":{"passed":50,"refused":162,"waited":3,"served":4,"gone":[10,30,1,2]}}`
	h := hotPhone()
	h.Outcomes = &FleetOutcomes{
		Outcomes: Outcomes{Passed: 50, Refused: 162, Waited: 3, Served: 4},
		Gone:     Outcomes{Passed: 10, Refused: 30, Waited: 1, Served: 2},
	}
	want := strings.TrimSuffix(infoPhone, "}") + field
	if got := string(EncodeInfo(h)); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	if got, err := ParseInfo([]byte(want)); err != nil || !reflect.DeepEqual(got.Outcomes, h.Outcomes) {
		t.Errorf("%+v, %v", got.Outcomes, err)
	}
	for _, edit := range [][2]string{{`"passed":50`, `"passed":-50`}, {"[10,", "[-10,"}, {"162", "281474976710657"}} {
		if got, err := ParseInfo([]byte(strings.Replace(want, edit[0], edit[1], 1))); err != nil || got.Outcomes != nil {
			t.Errorf("%v: %+v, %v", edit, got.Outcomes, err)
		}
	}
}
