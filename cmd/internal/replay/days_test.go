package replay

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/exact"
	"github.com/hotparam/hotparam/internal/accesslog"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/rules"
)

var firstDay = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)

// busyDays returns a log of days. Product 1 has 2 requests a minute, and 20 from 19:00 to 22:00.
// Product 2 has 2. From 06:00 on the fourth day product 2 has 40 for three days. On the ninth day
// at 20:00 product 1 has 100, on top of its peak, for twenty minutes.
func busyDays(days int) (log []exact.TraceRequest) {
	for minute := range days * 24 * 60 {
		day, of := minute/(24*60), time.Duration(minute%(24*60))*time.Minute
		for product, n := range [...]int{1: 2, 2: 2} {
			switch {
			case product == 1 && day == 8 && 20*time.Hour <= of && of < 20*time.Hour+20*time.Minute:
				n = 100
			case product == 1 && 19*time.Hour <= of && of < 22*time.Hour:
				n = 20
			case product == 2 && minute >= (3*24+6)*60 && minute < (6*24+6)*60:
				n = 40
			}
			for i := range n {
				at := firstDay.Add(time.Duration(minute)*time.Minute + time.Duration(i)*time.Minute/time.Duration(n))
				log = append(log, exact.TraceRequest{At: at.UnixNano(), Method: "GET", Target: fmt.Sprint("/product?id=", product)})
			}
		}
	}
	slices.SortStableFunc(log, func(a, b exact.TraceRequest) int { return cmp.Compare(a.At, b.At) })
	return log
}

// jumpRule returns a rule by one parameter that is hot at four times the baselines.
func jumpRule(t *testing.T, id, name string, least int64, pasts ...rules.Over) rules.Rule {
	t.Helper()
	route, err := rules.ParseRoute("*")
	if err != nil {
		t.Fatal(err)
	}
	rule := rules.Rule{ID: id, Match: rules.Match{Route: route}, By: rules.By{Kind: rules.ByNames, Names: []rules.Param{{Name: name}}}}
	for _, past := range pasts {
		jump := rules.NewThreshold(rules.Rate{N: least, Per: time.Minute})
		jump.Kind, jump.Factor, jump.Over = rules.Jump, rules.NewFraction(4, 1), past
		rule.Hot = append(rule.Hot, jump)
	}
	return rule
}

// spell is a time in which a key was hot.
type spell struct {
	key, threshold string
	low            int64
	from, to       time.Time
}

// spells replays a log and returns the spells of each rule.
func spells(t *testing.T, log Log, ruleset ...rules.Rule) map[string][]spell {
	t.Helper()
	found := make(map[string][]spell)
	all := &rules.Rules{Namespace: "shop", Rules: ruleset}
	if err := all.Validate(); err != nil {
		t.Fatal(err)
	}
	_, err := Run(context.Background(), Config{Rules: all, Log: log, OnEvent: func(e Event) {
		at, err := time.Parse(time.RFC3339Nano, e.Time)
		if err != nil {
			t.Error(err)
		}
		of := found[e.Rule]
		if e.Event == "hot" {
			found[e.Rule] = append(of, spell{e.Key, e.Threshold, e.Low, at, time.Time{}})
			return
		}
		for i := range of {
			if of[i].key == e.Key && of[i].to.IsZero() {
				of[i].to = at
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Compared over days, the peak of the evening is a jump on the first day alone. An attack of
// three days is hot until it ends, and a jump on top of the peak is found. Compared with the
// recent past, every evening is a jump, and the attack is forgotten within the hour.
func TestDaysOfALog(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	log := busyDays(9)
	found := spells(t, stdin(t, bytes.NewReader(jsonLog(t, log))),
		jumpRule(t, "days", "id", 12, rules.OverDay), jumpRule(t, "recent", "id", 12, rules.OverRecent),
		jumpRule(t, "both", "id", 12, rules.OverRecent, rules.OverDay))

	at := func(day, hour int) time.Time { return firstDay.Add(time.Duration(24*day+hour) * time.Hour) }
	const one, two = "GET /product?id=1", "GET /product?id=2"
	want := []spell{
		{one, "4x/1m over day", 0, at(0, 19), at(0, 20)},
		{two, "4x/1m over day", 0, at(3, 6), at(6, 6)},
		{one, "4x/1m over day", 0, at(8, 20), at(8, 20).Add(20 * time.Minute)},
	}
	// Both ends are known to a window and the cool-down. The recent past forgets after ten
	// windows.
	near := func(a, b time.Time, by time.Duration) bool { return a.Sub(b).Abs() <= by }
	days := found["days"]
	if len(days) != len(want) {
		t.Errorf("over days hot is %v", days)
	}
	for i, s := range days[:min(len(days), len(want))] {
		w, late := want[i], 2*time.Minute
		if i == 0 { // by the recent past, which has forgotten before the hour has passed
			late = time.Hour
		}
		if s.key != w.key || s.threshold != w.threshold || !near(s.from, w.from, 2*time.Minute) || !near(s.to, w.to, late) {
			t.Errorf("over days hot is %v, want %v", s, w)
		}
	}
	evenings := 0
	for _, s := range found["recent"] {
		switch {
		case s.key == one && s.from.Hour() == 19:
			evenings++
		case s.key == two && (!near(s.from, at(3, 6), 2*time.Minute) || s.to.Sub(s.from) > time.Hour):
			t.Errorf("over the recent past hot is %v", s)
		}
		if s.threshold != "4x/1m" {
			t.Errorf("over the recent past hot is %v", s)
		}
	}
	if evenings != 9 {
		t.Errorf("over the recent past %d evenings of nine are jumps", evenings)
	}
	isHot := func(of []spell, key string, at time.Time) bool {
		return slices.ContainsFunc(of, func(s spell) bool { return s.key == key && !at.Before(s.from) && at.Before(s.to) })
	}
	for minute := range 9 * 24 * 60 {
		at := firstDay.Add(time.Duration(minute)*time.Minute + 30*time.Second)
		for _, key := range []string{one, two} {
			if is, either := isHot(found["both"], key, at), isHot(days, key, at) || isHot(found["recent"], key, at); is != either {
				t.Fatalf("%s at %v: by both pasts hot is %t, by either %t", key, at, is, either)
			}
		}
	}
}

// On three days of a real trace, a key is hot over days exactly if its count is four times that
// of the days before, as counted directly from the trace.
func TestDaysOfATrace(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	const least = 20
	path := testenv.SharedData(t, "higgs-2012-07-01.access.log.zst")
	log, err := accesslog.Open([]string{path}, accesslog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	found := spells(t, log, jumpRule(t, "days", "user", least, rules.OverDay), jumpRule(t, "recent", "user", least, rules.OverRecent))

	hours := make(map[string]map[int64]int64) // key → hour → count
	requests := readTrace(t, path)
	for _, r := range requests {
		key := keyOf(r)
		if hours[key] == nil {
			hours[key] = make(map[int64]int64)
		}
		hours[key][r.At/int64(time.Hour)]++
	}
	first := requests[0].At / int64(time.Hour)
	// need returns the count that follows from the days before, and false on the first day.
	need := func(key string, at time.Time) (int64, bool) {
		hour := at.Unix() / 3600
		var tops []int64
		for same := hour - 24; same >= first; same -= 24 {
			of := hours[key]
			tops = append(tops, max(of[same-1], of[same], of[same+1]))
		}
		if len(tops) == 0 {
			return 0, false
		}
		slices.Sort(tops)
		return max(least, (4*tops[(len(tops)-1)/2]+59)/60), true
	}
	known := 0
	for _, s := range found["days"] {
		if n, ok := need(s.key, s.from); ok {
			known++
			if s.low < n {
				t.Errorf("%s is hot at %v with %d, and the days before ask for %d", s.key, s.from, s.low, n)
			}
		}
	}
	// The reverse holds as well: a whole minute with a tenth more than that must be in a spell.
	minutes := make(map[string]map[int64]int64)
	for _, r := range requests {
		key := keyOf(r)
		if minutes[key] == nil {
			minutes[key] = make(map[int64]int64)
		}
		minutes[key][r.At/int64(time.Minute)]++
	}
	must := 0
	for key, of := range minutes {
		for minute, n := range of {
			end := time.Unix((minute+1)*60, 0)
			if needed, ok := need(key, end.Add(-time.Second)); !ok || n < needed+needed/10+1 {
				continue
			}
			must++
			if !slices.ContainsFunc(found["days"], func(s spell) bool {
				return s.key == key && s.from.Before(end) && (s.to.IsZero() || s.to.After(end.Add(-time.Minute)))
			}) {
				t.Errorf("%s has %d in the minute before %v and is not hot", key, n, end)
			}
		}
	}
	t.Logf("%d spells over days, %d of them known by a day before, %d over the recent past; %d minutes that had to be hot", len(found["days"]), known, len(found["recent"]), must)
	if known == 0 || must == 0 {
		t.Error("nothing was compared")
	}
}

// keyOf returns the key of a request by its user.
func keyOf(r exact.TraceRequest) string {
	_, query, _ := strings.Cut(r.Target, "?")
	for pair := range strings.SplitSeq(query, "&") {
		if strings.HasPrefix(pair, "user=") {
			return "GET /status?" + pair
		}
	}
	return ""
}
