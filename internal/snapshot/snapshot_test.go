package snapshot

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

var noon = time.Unix(1_767_355_200, 0)

func drawSnapshot(t *rapid.T) *Snapshot {
	s := &Snapshot{Cut: noon, Plain: rapid.Bool().Draw(t, "plain"), Rules: []string{`"r"`, ""}}
	for range rapid.IntRange(1, 3).Draw(t, "senders") {
		seq := rapid.Uint64Range(1, 1<<40).Draw(t, "seq")
		s.Senders = append(s.Senders, Sender{
			Name: rapid.StringMatching(`[a-z0-9-]{1,20}`).Draw(t, "name"), Incarnation: rapid.Uint64().Draw(t, "incarnation"), Seq: seq,
			Sums:  wire.Sums{Stated: true, Booked: rapid.Uint64().Draw(t, "booked"), Loose: 7, Opened: 3, Shed: 1, Parts: 2, HeldBack: 9},
			Start: noon.Add(-time.Second), Heard: noon, First: seq, Opened: 4, Owed: 5, PrunedTo: 6, PrunedOpened: 8, PrunedFrom: noon.Add(-time.Hour),
		})
		if seq%3 == 0 {
			s.Senders[len(s.Senders)-1].Carried = Carried{seq, 2, 3, 4, 5, noon.Add(-time.Second), noon}
		}
		if seq%2 == 0 {
			s.Senders[len(s.Senders)-1].ByRule = Sums{Seq: seq - 1, Have: []uint64{1, rapid.Uint64().Draw(t, "sum"), 0, 4}}
		}
	}
	for i := range rapid.IntRange(0, 5).Draw(t, "keys") {
		newest := noon.Unix() - rapid.Int64Range(-1, 1000).Draw(t, "newest")
		v := WindowCounts{Counted: Counted{WindowShape: WindowShape{time.Second, 60, newest}, Bounds: Bounds{Known: newest - rapid.Int64Range(-1, 70).Draw(t, "known"), Later: 3}}}
		for pane := newest - 60; pane <= newest; pane += rapid.Int64Range(1, 30).Draw(t, "step") {
			v.Counts = append(v.Counts, Pane{pane, rapid.Int64Range(0, wire.MaxCount).Draw(t, "n")})
			v.Lacks = append(v.Lacks, Lack{pane, 4})
		}
		if i%2 == 0 {
			v.Below = []Below{{`rate 5`, noon.Add(-time.Minute), noon}}
		}
		if i%3 == 0 {
			v.History = &Counted{WindowShape: WindowShape{time.Minute, 14, newest / 60}, Counts: []Pane{{newest/60 - 3, 9}}, Bounds: v.Bounds}
			v.History.Known, v.History.Lacks = newest/60-5, []Lack{{newest/60 - 5, 1}}
		}
		s.Keys = append(s.Keys, RuleKey{Rule: i % 2, Text: []byte(strings.Repeat("k", i)), Views: []WindowCounts{v}, Accounts: []AccountRange{{Sender: 0, Number: 3, Low: 4, High: 10, Seq: 7, Heard: noon.UnixNano()}}})
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "references") {
		newest := noon.Unix() - rapid.Int64Range(-1, 1000).Draw(t, "newest")
		panes := []Pane{{newest - 9, rapid.Int64Range(-MaxTotal, MaxTotal).Draw(t, "n")}, {newest, 3}}
		r := ReferenceValues{Rule: i % 2, WindowShape: WindowShape{time.Second, 60, newest}, Others: Bounds{Known: newest - 59, Lacks: []Lack{{newest - 59, MaxTotal}}}}
		if i%2 == 0 {
			g := Group{Name: []byte("GET /s?q"), Counts: panes, Again: panes[1:]}
			r.Groups = &GroupTotals{Bounds: r.Others, Named: []Group{g, g}, Strays: Group{Name: []byte("-"), Counts: panes}, AllAgain: panes}
		}
		s.References = append(s.References, r)
	}
	if n := rapid.IntRange(0, 9).Draw(t, "costs"); n > 0 {
		s.Costs = []byte(strings.Repeat("c", n))
	}
	return s
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		data, dropped := s.Append([]byte("before"))
		got, err := Parse(data[len("before"):])
		if err != nil || dropped != 0 {
			t.Fatalf("%v, dropped %d", err, dropped)
		}
		for i := range s.Keys {
			if len(s.Keys[i].Text) == 0 {
				s.Keys[i].Text = got.Keys[i].Text
			}
		}
		if !reflect.DeepEqual(got, s) {
			t.Fatalf("got %+v, want %+v", got, s)
		}
	})
}

// Keys that do not fit are dropped from the end, and the rest can be read.
func TestSnapshotsAreBounded(t *testing.T) {
	s := &Snapshot{Cut: noon, Rules: []string{"r"}}
	for i := range 6000 {
		text := bytes.Repeat([]byte("x"), 200)
		s.Keys = append(s.Keys, RuleKey{Text: append(text, byte(i), byte(i>>8))})
	}
	data, dropped := s.Append(nil)
	got, err := Parse(data)
	if err != nil || len(data) > MaxSize || dropped == 0 || len(got.Keys)+dropped != 6000 {
		t.Fatalf("%d bytes, dropped %d: %v", len(data), dropped, err)
	}
	if !bytes.Equal(got.Keys[0].Text, s.Keys[0].Text) {
		t.Error("the first key was dropped")
	}
}

// A key for which a snapshot has no room has the bound of the other keys.
func TestKeysThatDoNotFitAreAmongTheOthers(t *testing.T) {
	const newest = 1_767_355_200
	s := &Snapshot{Cut: noon, Rules: []string{"r"}}
	key := func(text []byte, n, known int64) RuleKey {
		return RuleKey{Text: text, Views: []WindowCounts{{Counted: Counted{WindowShape{time.Second, 60, newest}, []Pane{{newest - 70, 100}, {newest - 3, n}}, Bounds{Known: known, Lacks: []Lack{{newest - 70, 2}}}}}}}
	}
	for _, c := range []struct{ known, bound, want int64 }{{newest - 70, 5, 9}, {newest - 70, 12, 12}, {newest - 50, 5, published.Unknown}} {
		s.Keys = nil
		for range 6000 {
			s.Keys = append(s.Keys, key(bytes.Repeat([]byte("x"), 200), 1, newest-70))
		}
		s.Keys = append(s.Keys, key(nil, 7, c.known))
		s.Keys[6000].Text = bytes.Repeat([]byte("y"), 300)
		s.References = []ReferenceValues{{WindowShape: WindowShape{time.Second, 60, newest}, Others: Bounds{Known: newest - 59, Lacks: []Lack{{newest - 59, c.bound}}}}}
		data, dropped := s.Append(nil)
		got, err := Parse(data)
		if err != nil || dropped == 0 || len(got.References) != 1 {
			t.Fatalf("dropped %d: %v", dropped, err)
		}
		if n := got.References[0].Others.LackFrom(newest - 59); n != c.want {
			t.Errorf("other keys have at most %d, want %d", n, c.want)
		}
		if s.References[0].Others.LackFrom(newest-59) != c.bound {
			t.Error("the snapshot itself has changed")
		}
	}
}

// Groups take at most half of a snapshot, and groups that do not fit are unknown.
func TestGroupsAreBounded(t *testing.T) {
	s := &Snapshot{Cut: noon, Rules: []string{"r"}, Keys: []RuleKey{{Text: []byte("k")}}}
	for i := range 10 {
		r := ReferenceValues{WindowShape: WindowShape{Pane: time.Duration(i + 1), Panes: 60}, Groups: new(GroupTotals)}
		for range 100 {
			r.Groups.Named = append(r.Groups.Named, Group{Name: bytes.Repeat([]byte("x"), 1000)})
		}
		s.References = append(s.References, r)
	}
	data, dropped := s.Append(nil)
	got, err := Parse(data)
	if err != nil || len(data) > MaxSize/2+1000 || dropped != 0 || len(got.References) != 10 || got.References[0].Groups == nil || got.References[9].Groups != nil {
		t.Errorf("%d bytes, %d keys dropped: %v", len(data), dropped, err)
	}
}

func TestNumber(t *testing.T) {
	s := &Snapshot{Rules: []string{"a", "", "gone"}, Keys: []RuleKey{{Rule: 0}, {Rule: 2}, {Rule: 0}}}
	s.Senders = []Sender{{ByRule: Sums{Have: []uint64{1, 2, 3, 4, 5, 6}}}}
	if !s.Renumber([]string{"b", "a", ""}) || len(s.Keys) != 2 || s.Keys[0].Rule != 1 || s.Keys[1].Rule != 1 {
		t.Errorf("%+v", s.Keys)
	}
	if got := s.Senders[0].ByRule.Have; !slices.Equal(got, []uint64{0, 0, 1, 2, 0, 0}) {
		t.Errorf("sums %v", got)
	}
	if s := (&Snapshot{Rules: []string{"gone", ""}}); s.Renumber([]string{"b", ""}) {
		t.Error("some rule is said to be there")
	}
}

func TestAttach(t *testing.T) {
	hash := rules.Hash([]byte("k"))
	s := &Snapshot{Senders: []Sender{{Accounts: []AccountRange{{Hash: hash, Rule: 1, Number: 3}, {Hash: hash, Rule: 0, Number: 4}}}}}
	s.Attach([]RuleKey{{Rule: 1, Text: []byte("k")}, {Rule: 1, Text: []byte("l")}})
	if len(s.Keys[0].Accounts) != 1 || s.Keys[0].Accounts[0].Number != 3 || len(s.Keys[1].Accounts) != 0 {
		t.Errorf("%+v", s.Keys)
	}
}

// Parsing arbitrary data is safe, and a parsed snapshot is written again unchanged.
func FuzzParse(f *testing.F) {
	rapid.Check(f, func(t *rapid.T) {
		data, _ := drawSnapshot(t).Append(nil)
		f.Add(data)
	})
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse(data)
		if err != nil {
			return
		}
		again, dropped := s.Append(nil)
		if dropped > 0 {
			return
		}
		got, err := Parse(again)
		if err != nil || !reflect.DeepEqual(got, s) {
			t.Fatalf("%v: got %+v, want %+v", err, got, s)
		}
	})
}
