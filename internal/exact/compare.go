package exact

import (
	"fmt"
	"time"
)

// Compare holds the events of a replay of a log in order against what they must
// be, and returns what is wrong, at most a few.
func (r Result) Compare(events []Event) (wrong []string) {
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
		report("%s: hot, and no window of %v holds %d", key, r.Threshold.D, r.Threshold.N)
	}
	byKey := make(map[string][]Event)
	for _, e := range events {
		byKey[e.Key] = append(byKey[e.Key], e)
	}
	for key, got := range byKey {
		want := r.Events[key]
		for i, e := range got {
			switch {
			case e.Hot != (i%2 == 0):
				report("%s: event %d is %v; hot and cool must alternate", key, i, e)
			case e.Hot && e.Low < r.Threshold.N:
				report("%s: hot with low %d below the threshold of %d", key, e.Low, r.Threshold.N)
			case i >= len(want):
				report("%s: event %d is %v, and there should be none", key, i, e)
			case e.Hot != want[i].Hot || e.At != want[i].At:
				report("%s: event %d is %v, want %v", key, i, e, want[i])
			case e.Low > want[i].Low || e.High >= 0 && e.High < want[i].Low:
				report("%s: event %d is %v, whose bounds do not hold the exact count of %d", key, i, e, want[i].Low)
			}
		}
		if len(got) < len(want) {
			report("%s: %d events, want %d; the next is %v", key, len(got), len(want), want[len(got)])
		}
	}
	return wrong
}

// String is the event in one line.
func (e Event) String() string {
	word := "cool"
	if e.Hot {
		word = "hot"
	}
	return fmt.Sprintf("%s at %s (%d to %d)", word, time.Unix(0, e.At).UTC().Format(time.RFC3339Nano), e.Low, e.High)
}
