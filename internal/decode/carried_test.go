package decode

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/snapshot"
	"github.com/hotparam/hotparam/internal/wire"
)

// A packet is lost shortly before a cut. If the key's account was opened before that packet, the
// first line of the account in the next process rules out that the packet held loose counts of the
// key. Otherwise it may have held some. If the account was also followed from before the packet,
// no count on the account is missing. Otherwise the missing ones may be older than the first that
// was counted.
func TestAccountsSpareWhatIsCarried(t *testing.T) {
	const flush = 100 * time.Millisecond
	for name, c := range map[string]struct {
		packets       []string // the first, the one behind the lost one, and the first after each cut
		spares, known bool
	}{
		"opened before": {[]string{
			summed(1, 0, "0.0.1.0.0.0.0", onAccount("x", 1, 1, 1)),
			summed(3, 2*flush, "1.5.1.0.0.0.5f5e100", onAccount("x", 1, 1, 2)),
			summed(4, 3*flush, "2.5.1.0.0.0.5f5e100", onAccount("x", 0, 1, 2)),
		}, true, true},
		"opened before, and the next process restarts soon": {[]string{
			summed(1, 0, "0.0.1.0.0.0.0", onAccount("x", 1, 1, 1)),
			summed(3, 2*flush, "1.5.1.0.0.0.5f5e100", onAccount("x", 1, 1, 2)),
			summed(4, 3*flush, "2.5.1.0.0.0.5f5e100", onAccount("x", 1, 1, 3)),
			summed(5, 4*flush, "3.5.1.0.0.0.5f5e100", onAccount("x", 0, 1, 3)),
		}, true, true},
		"opened behind": {[]string{
			summed(1, 0, "0.0.0.0.0.0.0", "shop.terms.hot_param.y:1|c"),
			summed(3, 2*flush, "0.6.1.0.0.0.5f5e100", onAccount("x", 1, 1, 1)),
			summed(4, 3*flush, "1.6.1.0.0.0.5f5e100", onAccount("x", 0, 1, 1)),
		}, false, false},
		"first heard behind": {[]string{
			summed(101, 0, "3.0.1.0.0.0.0", "shop.terms.hot_param.y:1|c"),
			summed(103, 2*flush, "7.6.1.0.0.0.5f5e100", onAccount("x", 1, 1, 8)), // 4 of them are missing
			summed(104, 3*flush, "8.6.1.0.0.0.5f5e100", onAccount("x", 0, 1, 8)),
		}, true, false},
		"first heard behind, and the next process restarts soon": {[]string{
			summed(101, 0, "3.0.1.0.0.0.0", "shop.terms.hot_param.y:1|c"),
			summed(103, 2*flush, "7.6.1.0.0.0.5f5e100", onAccount("x", 1, 1, 8)),
			summed(104, 3*flush, "8.6.1.0.0.0.5f5e100", onAccount("x", 1, 1, 9)),
			summed(105, 4*flush, "9.6.1.0.0.0.5f5e100", onAccount("x", 0, 1, 9)),
		}, true, false},
		"more is missing than was sent": {[]string{
			summed(1, 0, "0.0.1.0.0.0.0", onAccount("x", 1, 1, 1)),
			summed(3, 2*flush, "5.5.1.0.0.0.5f5e100", onAccount("x", 1, 1, 20)),
			summed(4, 3*flush, "6.5.1.0.0.0.5f5e100", onAccount("x", 0, 1, 20)),
		}, true, false},
	} {
		for _, early := range []bool{false, true} { // packets come before the snapshot is read
			now := noon.Add(time.Second)
			got, d := new(heard), NewDecoder(decoderRules(), wire.Plain)
			d.Packet([]byte(c.packets[0]), now, got)
			d.Packet([]byte(c.packets[1]), now, got)
			for _, p := range c.packets[2:] {
				got, d = restarted(t, d, p, now, early)
			}
			has := func(text string) bool {
				return slices.ContainsFunc(*got, func(s string) bool { return strings.Contains(s, text) })
			}
			if !has("5 loose") && !has("6 loose") || has("known false") != c.spares || has("known true") != c.known {
				t.Errorf("%s, early %v: told\n%s", name, early, strings.Join(*got, "\n"))
			}
		}
	}
}

// A key that was silent for as long as a sender keeps its account may have had loose counts in the
// gap of a restart, whenever the next process receives packets of the sender.
func TestARestartSparesNoKeyThatWasSilent(t *testing.T) {
	for _, early := range []bool{false, true} {
		d := NewDecoder(decoderRules(), wire.Plain)
		d.Packet([]byte(summed(1, 0, "0.0.1.0.0.0.0", onAccount("x", 1, 1, 1))), noon.Add(time.Second), new(heard))
		after := summed(100, time.Minute, "1.5.1.0.0.0.5f5e100", "shop.terms.hot_param.y:1|c")
		got, _ := restarted(t, d, after, noon.Add(time.Minute+time.Second), early)
		if text := strings.Join(*got, "\n"); !strings.Contains(text, "5 loose") || strings.Contains(text, "spares") {
			t.Errorf("early %v: told\n%s", early, text)
		}
	}
}

// restarted returns the reports of the process after before when it receives a packet, and its
// decoder. The keys x and y are in the snapshot.
func restarted(t *testing.T, before *Decoder, packet string, now time.Time, early bool) (got *heard, d *Decoder) {
	t.Helper()
	of := &snapshot.Snapshot{Cut: now}
	before.Save(of)
	of.Attach([]snapshot.RuleKey{{Rule: 0, Text: []byte("x")}, {Rule: 0, Text: []byte("y")}})
	got, d = new(heard), NewDecoder(decoderRules(), wire.Plain)
	if early {
		d.Packet([]byte(packet), now, got)
	}
	resume, err := d.Resume(of, now, now)
	if err != nil {
		t.Fatal(err)
	}
	resume(got)
	if !early {
		d.Packet([]byte(packet), now, got)
	}
	return got, d
}
