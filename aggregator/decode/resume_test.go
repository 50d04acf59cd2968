package decode

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/aggregator/internal/snapshot"
	"github.com/hotparam/hotparam/wire"
)

// An instance that had just started when the process before ended, and that this one has heard
// before it read the snapshot, lacks what lies between the two, and not what it sent in all.
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
