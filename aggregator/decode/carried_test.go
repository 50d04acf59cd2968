package decode

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/aggregator/internal/snapshot"
	"github.com/hotparam/hotparam/wire"
)

// A packet is lost shortly before a cut. What the next process hears of a key's account spares the
// key what that packet held, if the account had been opened before it: else the key may have had
// loose counts there.
func TestAccountsSpareWhatIsCarried(t *testing.T) {
	const flush = 100 * time.Millisecond
	now := noon.Add(time.Second)
	for name, c := range map[string]struct {
		packets [3]string // the first, the third, and the first after the cut
		spares  bool
	}{
		"opened before": {[3]string{
			summed(1, 0, "0.0.1.0.0.0.0", onAccount("x", 1, 1, 1)),
			summed(3, 2*flush, "1.5.1.0.0.0.5f5e100", onAccount("x", 1, 1, 2)),
			summed(4, 3*flush, "2.5.1.0.0.0.5f5e100", onAccount("x", 0, 1, 2)),
		}, true},
		"opened behind": {[3]string{
			summed(1, 0, "0.0.0.0.0.0.0", "shop.terms.hot_param.y:1|c"),
			summed(3, 2*flush, "0.6.1.0.0.0.5f5e100", onAccount("x", 1, 1, 1)),
			summed(4, 3*flush, "1.6.1.0.0.0.5f5e100", onAccount("x", 0, 1, 1)),
		}, false},
	} {
		for _, early := range []bool{false, true} { // the packet comes before the snapshot is read
			before := NewDecoder(decoderRules(), wire.Plain)
			for _, p := range c.packets[:2] {
				before.Packet([]byte(p), now, new(heard))
			}
			of := &snapshot.Snapshot{Cut: now}
			before.Save(of)
			of.Attach([]snapshot.Key{{Rule: 0, Text: []byte("x")}})
			var got heard
			d := NewDecoder(decoderRules(), wire.Plain)
			if early {
				d.Packet([]byte(c.packets[2]), now, &got)
			}
			resume, err := d.Resume(of, now, now)
			if err != nil {
				t.Fatal(err)
			}
			resume(&got)
			if !early {
				d.Packet([]byte(c.packets[2]), now, &got)
			}
			gap := slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, "5 loose") })
			spared := slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, "spares") })
			known := slices.ContainsFunc(got, func(s string) bool { return strings.HasSuffix(s, "known true") })
			if !gap || spared != c.spares || known != c.spares {
				t.Errorf("%s, early %v: told\n%s", name, early, strings.Join(got, "\n"))
			}
		}
	}
}
