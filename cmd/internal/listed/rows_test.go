package listed

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/hotwords"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// A key that is hot by its cost is printed with its stage, and below it how it is held, and why.
func TestHotRowsOfHeldKeys(t *testing.T) {
	h := published.Hot{Rate: 930, Low: 930, High: 930, Mode: rules.ModeLimit, Cause: published.Cause{Kind: rules.Cost, Rate: rules.CostRate, Unit: rules.Millis},
		Hold: &published.Hold{Pool: "db", Permits: 1, Stage: published.HoldKept, Share: 0.93, Each: 812 * time.Millisecond}}
	var table bytes.Buffer
	if err := HotRows([]published.Hot{h}, nil).Table(&table, false); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(table.String(), "\n")
	if got := strings.Join(strings.Fields(lines[1]), " "); !strings.HasPrefix(got, "930.0 ms/s 930 ms in 1s cost - - - held ") {
		t.Errorf("%q", got)
	}
	if want := "    held to 1 at a time · 93% of db's time · 812 ms a request"; lines[2] != want {
		t.Errorf("%q, want %q", lines[2], want)
	}
	text, err := json.Marshal(HotRows([]published.Hot{h}, nil).Values)
	if want := `"hold":{"pool":"db","permits":1,"stage":"kept","share":0.93,"each_ms":812,"usual_ms":0,"slow_ms":0,"now_ms":0,"words":"held to`; err != nil || !strings.Contains(string(text), want) {
		t.Errorf("%s, %v; want %s", text, err, want)
	}
}

// A hot key is printed with the threshold that made it hot, with its window and its unit, and
// bytes as bytes.
func TestHotRowsTellTheCause(t *testing.T) {
	rate := func(n int64, per time.Duration) rules.Rate { return rules.Rate{N: n, Per: per} }
	for _, c := range []struct {
		hot  published.Hot
		want string // the row up to the limit
		json string
	}{
		{published.Hot{Rate: 208, Low: 212, High: 230, Cause: published.Cause{Rate: rate(200, time.Second)}, Limit: rate(50, time.Second)},
			"208.0/s 212-230 in 1s 200/s 50/s", `"low":212,"high":230,"kind":"rate","threshold":"200/s","min":200,"window_seconds":1,"unit":"requests","limit":"50/s"`},
		{published.Hot{Rate: 1.5e6, Low: 15e6, High: 15e6, Cause: published.Cause{Kind: rules.Share, Factor: rules.Percent(20), Rate: rate(1e6, 10*time.Second), Unit: rules.Bytes}, Limit: rate(2e6, time.Second)},
			"1.5 MB/s 15.0 MB in 10s 20%/10s 2MB/s", `"low":15000000,"high":15000000,"kind":"share","threshold":"20%/10s","min":1000000,"window_seconds":10,"unit":"bytes","limit":"2000000/s"`},
		{published.Hot{Rate: 999, Low: 10e6, High: published.Unknown, Cause: published.Cause{Rate: rate(10e6, time.Minute), Unit: rules.Bytes}},
			"999 B/s 10.0 MB or more in 1m 10MB/1m -", `"high":null,"kind":"rate","threshold":"10000000/1m","min":10000000,"window_seconds":60,"unit":"bytes"`},
		{published.Hot{Rate: 350, Low: 400, High: 500, Cause: published.Cause{Kind: rules.Jump, Factor: rules.Percent(150), Rate: rate(20, time.Second), Unit: rules.Millis}},
			"350.0 ms/s 400 ms-500 ms in 1s 1.5x/s -", `"kind":"jump","threshold":"1.5x/s","min":20,"window_seconds":1,"unit":"ms"`},
		{published.Hot{Rate: 7, Low: 400, High: 400, Cause: published.Cause{Kind: rules.Jump, Factor: rules.NewFraction(4, 1), Over: rules.OverDay, Rate: rate(20, time.Minute)}},
			"7.0/s 400 in 1m 4x/1m over day -", `"kind":"jump","threshold":"4x/1m over day","over":"day","min":20,"window_seconds":60`},
		{published.Hot{Rate: 0, Low: 3, High: 3, Cause: published.Cause{Kind: rules.Top, Top: 3, Rate: rate(2, time.Hour), Unit: rules.Units}},
			"0.0 units/s 3 units in 1h top 3/1h -", `"kind":"top","threshold":"top 3/1h","min":2,"window_seconds":3600,"unit":"units"`},
		{published.Hot{Rate: 7, Low: 7, High: 9, Limit: rate(1, time.Second)}, "7.0/s 7-9 - 1/s", `"high":9,"limit":"1/s"`},
	} {
		c.hot.Mode = rules.ModeWatch
		var table bytes.Buffer
		if err := HotRows([]published.Hot{c.hot}, nil).Table(&table, false); err != nil {
			t.Fatal(err)
		}
		_, row, _ := strings.Cut(table.String(), "\n")
		if got := strings.Join(strings.Fields(row), " "); !strings.HasPrefix(got, c.want+" - - watch ") {
			t.Errorf("%q, want %q", got, c.want)
		}
		text, err := json.Marshal(HotRows([]published.Hot{c.hot}, nil).Values)
		if err != nil || !strings.Contains(string(text), c.json) {
			t.Errorf("%s, %v; want %s", text, err, c.json)
		}
	}
	for n, want := range map[float64]string{0: "0 B", 999: "999 B", 999.96: "1.0 kB", 1234: "1.2 kB", 999_940: "999.9 kB", 999_960: "1.0 MB", 2.5e9: "2.5 GB", 5e15: "5000.0 TB"} {
		if got := hotwords.Bytes(n); got != want {
			t.Errorf("%v: %s, want %s", n, got, want)
		}
	}
}
