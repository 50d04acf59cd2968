package published

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/rules"
)

const infoHold = `,"hold":{"pool":"orders-db","permits":1,"stage":"kept","share":0.93,"each_ms":812,"usual_ms":4.1,"slow_ms":96,"now_ms":4.6}}`

func holdPhone() *Hold {
	return &Hold{
		Pool: "orders-db", Permits: 1, Stage: HoldKept, Share: 0.93, Each: 812 * time.Millisecond, Usual: 4100 * time.Microsecond,
		Slow: 96 * time.Millisecond, Now: 4600 * time.Microsecond,
	}
}

// The hold is a field of its own at the end, which earlier readers ignore.
func TestHoldGolden(t *testing.T) {
	h := hotPhone()
	h.Hold = holdPhone()
	want := strings.TrimSuffix(infoPhone, "}") + infoHold
	if got := string(EncodeInfo(h)); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	if got, err := ParseInfo([]byte(want)); err != nil || !reflect.DeepEqual(got.Hold, h.Hold) {
		t.Errorf("%+v, %v", got.Hold, err)
	}
}

func TestParseHoldRefuses(t *testing.T) {
	whole := strings.TrimSuffix(infoPhone, "}") + infoHold
	for name, edit := range map[string][2]string{
		"no pool":          {`"orders-db"`, `""`},
		"pool of no name":  {`orders-db`, `Orders DB`},
		"long pool":        {`orders-db`, strings.Repeat("p", 65)},
		"negative permits": {`"permits":1`, `"permits":-1`},
		"many permits":     {`"permits":1`, `"permits":1000001`},
		"half a permit":    {`"permits":1`, `"permits":1.5`},
		"negative share":   {`0.93`, `-0.93`},
		"more than all":    {`0.93`, `1.01`},
		"negative time":    {`4.1`, `-4.1`},
		"more than a day":  {`812`, `86400001`},
		"no object":        {`"hold":{`, `"hold":[],"rest":{`},
	} {
		value := strings.Replace(whole, edit[0], edit[1], 1)
		if value == whole {
			t.Fatalf("%s: nothing was edited", name)
		}
		if h, err := ParseInfo([]byte(value)); err == nil {
			t.Errorf("%s: %s was read as %+v", name, value, h.Hold)
		}
	}
	h, err := ParseInfo([]byte(strings.Replace(whole, `"kept"`, `"paroled"`, 1)))
	if err != nil || h.Hold != nil || h.Low != 212 {
		t.Errorf("a stage of a later version: %+v, %v; want the key without a hold", h.Hold, err)
	}
}

// A publisher shortens a hold to the bounds of readers.
func TestHoldIsBounded(t *testing.T) {
	h := hotPhone()
	h.Hold = &Hold{Pool: "p", Stage: HoldTrial, Share: math.Inf(1), Each: -1, Usual: math.MaxInt64, Slow: 1500, Now: 999}
	got, err := ParseInfo(EncodeInfo(h))
	want := &Hold{Pool: "p", Stage: HoldTrial, Usual: 24 * time.Hour, Slow: time.Microsecond}
	if err != nil || !reflect.DeepEqual(got.Hold, want) {
		t.Errorf("%+v, %v; want %+v", got.Hold, err, want)
	}
}

func genHold(t *rapid.T) *Hold {
	if rapid.Bool().Draw(t, "not held") {
		return nil
	}
	span := func(name string) time.Duration {
		return time.Duration(rapid.Int64Range(0, 24*int64(time.Hour/time.Microsecond)).Draw(t, name)) * time.Microsecond
	}
	return &Hold{
		Pool: rapid.StringMatching(`[a-z0-9_-]{1,64}`).Draw(t, "pool"), Permits: rapid.Int64Range(0, rules.MaxConcurrency).Draw(t, "permits"),
		Stage: rapid.SampledFrom([]HoldStage{HoldTrial, HoldKept, HoldSuspected}).Draw(t, "stage"),
		Share: rapid.Float64Range(0, 1).Draw(t, "share"), Each: span("each"), Usual: span("usual"), Slow: span("slow"), Now: span("now"),
	}
}
