package replay

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/exact"
	"github.com/hotparam/hotparam/rules"
)

// sizedLog returns a log of one request each 100 ms. A request for which size returns "" has no
// number of bytes.
func sizedLog(requests int, target string, size func(i int) string) []byte {
	var b bytes.Buffer
	for i := range requests {
		at := time.Unix(1_700_000_000, 0).Add(time.Duration(i) * 100 * time.Millisecond).UTC()
		fmt.Fprintf(&b, `{"time":%q,"method":"GET","uri":%q%s}`+"\n", at.Format(time.RFC3339Nano), target, size(i))
	}
	return b.Bytes()
}

// Bytes are counted where the log has them, and a limit on them is charged when a request is
// done.
func TestBytes(t *testing.T) {
	limit := &rules.Limit{Quota: rules.Quota{Rate: rules.Rate{N: 1000, Per: time.Second}, Burst: 1000}, Mode: rules.ModeLimit}
	byBytes := testRules(t, "q", exact.NewThreshold(5000, time.Second), limit)
	byBytes.Rules[0].Count = rules.Bytes
	for _, c := range []struct {
		name string
		size func(i int) string
		hot  int64 // 0: never
		none int64
	}{
		{"all", func(int) string { return `,"bytes":1000` }, 5000, 0},
		{"as nginx names them", func(int) string { return `,"body_bytes_sent":"2500"` }, 5000, 0},
		{"every other one", func(i int) string { return []string{`,"bytes":1000`, ""}[i%2] }, 5000, 20},
		{"too few", func(int) string { return `,"bytes":499` }, 0, 0},
		{"none", func(int) string { return "" }, 0, 40},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := collect{t: t}
			summary, err := Run(t.Context(), Config{
				Rules: byBytes, Log: stdin(t, bytes.NewReader(sizedLog(40, "/s?q=file", c.size))), OnEvent: got.add,
			})
			if err != nil || summary.NoBytes != c.none || summary.Requests != 40 {
				t.Fatalf("%v, %+v", err, summary)
			}
			if c.hot == 0 {
				if len(got.events) > 0 || summary.Limited > 0 {
					t.Errorf("%+v, %+v: want nothing hot", got.events, summary)
				}
				return
			}
			if len(got.events) == 0 || summary.Limited == 0 {
				t.Fatalf("%+v, %+v: want the key hot and limited", got.events, summary)
			}
			e := got.events[0]
			if e.Low != c.hot || e.Unit != "bytes" || e.Rate != float64(c.hot) || e.Threshold != "5000/s" || e.Window != 1 {
				t.Errorf("%+v", e)
			}
		})
	}
}

// If a key passes several thresholds, the first one that it reached is reported, with its window.
// For a key that cools it is the last one that held it.
func TestThresholdThatMadeItHot(t *testing.T) {
	var requests []exact.TraceRequest
	at := int64(1_700_000_000e9)
	for range 8 { // slowly: 30 within a minute
		for range 4 {
			requests = append(requests, exact.TraceRequest{At: at, Method: "GET", Target: "/s?q=slow"})
		}
		at += 2e9
	}
	for range 12 { // a burst: 10 within a second
		requests = append(requests, exact.TraceRequest{At: at, Method: "GET", Target: "/s?q=burst"})
		at += 1e7
	}
	requests = append(requests, exact.TraceRequest{At: at + 600e9, Method: "GET", Target: "/s?q=end"})
	all := testRules(t, "q", exact.NewThreshold(10, time.Second), nil)
	minute := exact.NewThreshold(30, time.Minute)
	all.Rules[0].Hot = append(all.Rules[0].Hot, rules.Threshold{
		Rate: rules.Rate{N: 30, Per: time.Minute}, Exit: rules.NewFraction(minute.Exit.Num, minute.Exit.Den), Hold: minute.Hold, CoolDown: minute.CoolDown,
	})
	got := collect{t: t}
	if _, err := Run(t.Context(), Config{Rules: all, Log: stdin(t, bytes.NewReader(jsonLog(t, requests))), OnEvent: got.add}); err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, e := range got.events {
		told = append(told, fmt.Sprint(e.Event, " ", e.Key, " ", e.Threshold, " ", e.Window))
	}
	want := "[hot GET /s?q=slow 30/1m 60 hot GET /s?q=burst 10/s 1 cool GET /s?q=burst 10/s 1 cool GET /s?q=slow 30/1m 60]"
	if fmt.Sprint(told) != want {
		t.Errorf("%v\nwant %s", told, want)
	}
	// Both thresholds are passed. The first one that is counts, and at the end the last.
	requests = requests[:0]
	for i := range int64(60) {
		requests = append(requests, exact.TraceRequest{At: 1_700_000_000e9 + i*5e7, Method: "GET", Target: "/s?q=both"})
	}
	requests = append(requests, exact.TraceRequest{At: 1_700_000_600e9, Method: "GET", Target: "/s?q=end"})
	got = collect{t: t}
	if _, err := Run(t.Context(), Config{Rules: all, Log: stdin(t, bytes.NewReader(jsonLog(t, requests))), OnEvent: got.add}); err != nil {
		t.Fatal(err)
	}
	if len(got.events) != 2 || got.events[0].Threshold != "10/s" || got.events[1].Threshold != "30/1m" {
		t.Errorf("%+v", got.events)
	}
}
