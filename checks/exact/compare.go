package exact

import (
	"fmt"
	"time"
)

// Compare compares the events of a replayed log, whose lines are in the order of time, with the exact
// result. It returns at most ten differences. A replay loses nothing and has memory for all keys, so
// its bounds are the exact counts.
func (r LogResult) Compare(events []HotChange) (wrong []string) {
	report := func(format string, args ...any) {
		if len(wrong) < 10 {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	hot := HotKeys(events)
	for _, key := range r.Missing(hot) {
		report("%s: reached the threshold and was not hot: %v", key, r.Events[key][0])
	}
	for _, key := range r.False(hot) {
		report("%s: hot, and never reached a threshold", key)
	}
	byKey := make(map[string][]HotChange)
	for _, e := range events {
		byKey[e.Key] = append(byKey[e.Key], e)
	}
	for key, got := range byKey {
		want := r.Events[key]
		for i, e := range got {
			switch {
			case e.Hot != (i%2 == 0):
				report("%s: event %d is %v; hot and cool must alternate", key, i, e)
			case i >= len(want):
				report("%s: event %d is %v, and there should be none", key, i, e)
			case e.Hot != want[i].Hot || e.At != want[i].At || e.Threshold != want[i].Threshold:
				report("%s: event %d is %v, want %v", key, i, e, want[i])
			case e.Low != want[i].Low || e.High != want[i].High:
				report("%s: event %d is %v, whose bounds are not the exact count of %d", key, i, e, want[i].Low)
			}
		}
		if len(got) < len(want) {
			report("%s: %d events, want %d; the next is %v", key, len(got), len(want), want[len(got)])
		}
	}
	return wrong
}

// CompareRules compares like [LogResult.Compare], but for events of several rules. The keys of
// results are rule ids.
func CompareRules(results map[string]LogResult, events []HotChange) (wrong []string) {
	byRule := make(map[string][]HotChange)
	for _, e := range events {
		if _, known := results[e.Rule]; !known {
			return []string{fmt.Sprintf("%s: an event of unknown rule %q", e.Key, e.Rule)}
		}
		byRule[e.Rule] = append(byRule[e.Rule], e)
	}
	for id, r := range results {
		for _, w := range r.Compare(byRule[id]) {
			wrong = append(wrong, fmt.Sprintf("%s %+v: %s", id, r.Rule, w))
		}
	}
	return wrong
}

// String formats the event as one line.
func (e HotChange) String() string {
	word := "cool"
	if e.Hot {
		word = "hot"
	}
	return fmt.Sprintf("%s at %s by %s (%d to %d)", word, time.Unix(0, e.At).UTC().Format(time.RFC3339Nano), e.Threshold, e.Low, e.High)
}
