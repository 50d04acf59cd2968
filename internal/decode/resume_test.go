package decode

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/snapshot"
	"github.com/hotparam/hotparam/internal/wire"
)

// An instance started just before the previous process ended, and this process received its
// packets before reading the snapshot. It lacks only the counts between the two, not everything
// that it sent.
func TestResumeOfAYoungInstance(t *testing.T) {
	const flush = 100 * time.Millisecond
	now := noon.Add(time.Second)
	before := NewDecoder(decoderRules(), wire.Plain)
	before.Packet([]byte(summed(1, 0, "0.0.0.0.0.0.0", "shop.terms.hot_param.x:10|c")), now, new(heard))
	of := &snapshot.Snapshot{Cut: now}
	before.Save(of)

	var got heard
	d := NewDecoder(decoderRules(), wire.Plain)
	d.Packet([]byte(summed(4, 3*flush, "0.f.0.0.0.0.5f5e100", "shop.terms.hot_param.x:1|c")), now, &got)
	resume, err := d.Resume(of, now, now)
	if err != nil {
		t.Fatal(err)
	}
	got = nil
	resume(&got)
	want := "5 loose, 0 booked"
	gaps := slices.DeleteFunc(slices.Clone(got), func(s string) bool { return !strings.HasPrefix(s, "gap ") })
	if len(gaps) != 2 || !strings.Contains(gaps[0], "0 loose, 0 booked") || !strings.Contains(gaps[1], want) {
		t.Errorf("told\n%s\nwant the gap of before taken back, and one of %s", strings.Join(got, "\n"), want)
	}
}

// An instance sent heartbeats until a process ended, and restarts before the process after the
// next has received its packets. It may have sent counts that no process received, however long no
// process listened in between.
func TestResumeOfAnInstanceThatNoProcessCouldHear(t *testing.T) {
	start := noon.Add(time.Second)
	first := NewDecoder(decoderRules(), wire.Plain)
	first.Packet([]byte(summed(1, 0, "0.0.0.0.0.0.0", "shop.terms.hot_param.x:10|c")), start, new(heard))
	of := &snapshot.Snapshot{Cut: start.Add(time.Second)}
	first.Save(of)

	next := func(of *snapshot.Snapshot, now time.Time) (d *Decoder, got *heard) {
		d, got = NewDecoder(decoderRules(), wire.Plain), new(heard)
		resume, err := d.Resume(of, now, now)
		if err != nil {
			t.Fatal(err)
		}
		resume(got)
		return d, got
	}
	now := start.Add(10 * time.Second)
	second, _ := next(of, now)
	of = &snapshot.Snapshot{Cut: now.Add(time.Second)}
	second.Save(of)
	now = now.Add(2 * time.Second)
	third, got := next(of, now)
	for seq := range uint64(5) {
		now = now.Add(time.Second)
		third.Packet(wire.AppendMeta(nil, wire.Meta{Instance: []byte("a"), Incarnation: 2, Seq: seq + 1, Start: now.UnixNano(), Held: 1, Sums: wire.Sums{Stated: true}}), now, got)
	}
	if text := strings.Join(*got, "\n"); !strings.Contains(text, "lost") || strings.Contains(text, "found") {
		t.Errorf("told\n%s\nwant a loss that is not taken back", text)
	}
}
