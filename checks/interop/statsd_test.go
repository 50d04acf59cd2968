package interop

import (
	"fmt"
	"maps"
	"slices"
	"testing"
)

// Each program finds a term hot at the threshold, and none that it counted less often.
func TestHotByOtherPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	d := startDaemon(t)
	address := "127.0.0.1:" + d.udp
	want := make(map[string]int64)
	for i := range senders {
		s := &senders[i]
		t.Run(s.name, func(t *testing.T) {
			hot, warm := fmt.Sprintf("hot: 100%% by %s.", s.name), "warm by "+s.name
			terms := append(slices.Repeat([]string{warm}, threshold-1), slices.Repeat([]string{hot}, threshold)...)
			before := d.metric(t, counted)
			s.runExample(t, address, terms...)
			d.awaitHot(t, hot)
			d.await(t, counted, before+len(terms))
			want[keyOf(hot)] = threshold
			if got := d.list(t); !maps.Equal(got, want) {
				t.Errorf("hot: %v, want %v", got, want)
			}
			s.runExample(t, address, warm)
			d.awaitHot(t, warm)
			want[keyOf(warm)] = threshold
		})
	}
	d.checkRejected(t)
}
