package history

import (
	"testing"
	"time"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// epoch0 is a beginning of ten hours, so that every level's chunks begin with it. It is long ago, as
// nothing may depend on the present.
const epoch0 = 1_764_000_000 / 36_000 * 36_000

// Every range, whatever chunks it is read from, has bounds of the truth, and no amount twice.
func TestHistoryIsTheTruthAtEachLevel(t *testing.T) {
	s, f := testStore(t), newTraffic(20)
	w := testWriter(s, nil)
	const from, seconds = epoch0 + 35_300, 1500 // over the ends of all chunks
	f.run(t, w, from, seconds)
	for _, columns := range []int{1000, 150, 25, 3, 1} {
		for _, part := range [][2]int64{{from, from + seconds}, {from + 61, from + 777}, {from + 600, from + 660}, {from + 1490, from + seconds}} {
			v := read(t, s, part[0], part[1], columns)
			if n := (v.To - v.From + v.Step - 1) / v.Step; n > int64(columns) {
				t.Errorf("%d columns of %d s, want at most %d", n, v.Step, columns)
			}
			if len(v.Rows) != 20 || len(v.Gaps) != 0 && v.From >= from {
				t.Errorf("%d rows, gaps %v", len(v.Rows), v.Gaps)
			}
			f.check(t, v)
		}
	}
	if st := w.Stats(); st.Panes < seconds || st.Chunks == 0 || st.Dropped != (DroppedPanes{}) {
		t.Errorf("%+v", st)
	}
}

// A process that dies leaves what it has written. Its successor continues, in the middle of each
// chunk, and nothing is counted twice or missing but the time in between.
func TestSuccessorContinues(t *testing.T) {
	s, f := testStore(t), newTraffic(10)
	const from = epoch0 + 3_000
	f.run(t, testWriter(s, nil), from, 200)
	w := testWriter(s, nil)
	f.run(t, w, from+230, 700)
	v := read(t, s, from, from+930, 1000)
	f.check(t, v)
	if len(v.Gaps) != 1 || v.Gaps[0] != [2]int64{from + 200, from + 230} {
		t.Errorf("gaps %v", v.Gaps)
	}
	v = read(t, s, from, from+930, 10)
	f.check(t, v)
}

// Two processes count the same. The one in office writes; when the office changes hands the other has
// the seconds that the first has not written. A former writer is fenced off, and nothing is doubled.
func TestOfficeChangesHands(t *testing.T) {
	s, f := testStore(t), newTraffic(10)
	const from = epoch0 + 7_000
	inOffice := [2]bool{true, false}
	var writers [2]*Writer
	for i := range writers {
		writers[i] = testWriter(s, func(c *Config) { c.InOffice = func() bool { return inOffice[i] } })
	}
	for i := range int64(400) {
		tops := f.second(from + i)
		for _, w := range writers {
			w.Add(tops)
		}
		switch i {
		case 130: // the first is dead for the rest
			inOffice[0] = false
		case 140:
			inOffice[1] = true
		case 300: // both believe to be in office
			inOffice[0] = true
		}
		for _, w := range writers {
			w.step(t.Context())
			w.retry = time.Time{}
		}
	}
	inOffice = [2]bool{false, true}
	for range 3 {
		writers[1].step(t.Context())
		writers[1].retry = time.Time{}
	}
	v := read(t, s, from, from+400, 1000)
	f.check(t, v)
	if len(v.Gaps) != 0 {
		t.Errorf("gaps %v", v.Gaps)
	}
	f.check(t, read(t, s, from, from+400, 7))
	if writers[0].Stats().Failures+writers[1].Stats().Failures == 0 {
		t.Error("no writer was fenced off")
	}
}

// While Redis is away, seconds wait, and are written when it is back.
func TestOutage(t *testing.T) {
	s, f := testStore(t), newTraffic(5)
	w := testWriter(s, nil)
	const from = epoch0 + 100
	f.run(t, w, from, 50)
	working := w.cfg.Store
	away, err := NewStore(testClient(t, "redis://127.0.0.1:1"), "shop")
	must(t, err)
	w.cfg.Store = away
	for i := range int64(100) {
		w.Add(f.second(from + 50 + i))
		if i == 50 {
			w.step(t.Context())
		}
	}
	if w.Stats().Failing == "" {
		t.Fatal("it does not fail")
	}
	w.cfg.Store, w.retry = working, time.Time{}
	f.run(t, w, from+150, 100)
	v := read(t, s, from, from+250, 1000)
	f.check(t, v)
	if len(v.Gaps) != 0 {
		t.Errorf("gaps %v", v.Gaps)
	}
}

// The finest of the oldest goes first when the owner has its part of the memory, and what is left can
// still be read, with longer columns.
func TestMemoryIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	s, f := testStore(t), newTraffic(30)
	const memory, from, seconds = 60_000, epoch0, 3000
	w := testWriter(s, func(c *Config) { c.Memory = memory })
	f.run(t, w, from, seconds)
	if n := w.Stats().Bytes; n > memory+memory/4 {
		t.Errorf("%d bytes, want about %d", n, memory)
	}
	v := read(t, s, from, from+seconds, 1000)
	if v.Step < 10 {
		t.Errorf("the beginning is left in columns of %d s", v.Step)
	}
	f.check(t, read(t, s, from, from+2400, 40))
	v = read(t, s, from+seconds-120, from+seconds, 1000)
	if v.Step != 1 {
		t.Errorf("the end is in columns of %d s", v.Step)
	}
	f.check(t, v)
}

// Marks keep their seconds at each level, and one that comes before its counts waits for them.
func TestMarks(t *testing.T) {
	s, f := testStore(t), newTraffic(3)
	w := testWriter(s, nil)
	const from = epoch0 + 590
	w.Mark(Mark{At: from + 100, Kind: MarkRules, Words: "rules version 2"})
	w.Mark(Mark{At: from + 101, Kind: MarkHot, Rule: "search", Text: "GET /search?q=1", Words: "hot"})
	f.run(t, w, from, 800)
	for _, columns := range []int{1000, 100, 10} {
		v := read(t, s, from, from+800, columns)
		if len(v.Marks) != 2 || v.Marks[0].At != from+100 || v.Marks[1].Text != "GET /search?q=1" {
			t.Errorf("%d columns: marks %+v", columns, v.Marks)
		}
	}
}

// What must not be stored is only in the rest.
func TestHiddenKeys(t *testing.T) {
	s, f := testStore(t), newTraffic(3)
	w := testWriter(s, func(c *Config) { c.Hides = func(text string) bool { return text == "GET /search?q=1" } })
	w.Mark(Mark{At: epoch0, Kind: MarkHot, Rule: "search", Text: "GET /search?q=1"})
	f.run(t, w, epoch0, 130)
	v := read(t, s, epoch0, epoch0+130, 1000)
	f.check(t, v)
	if len(v.Rows) != 2 || len(v.Marks) != 0 || w.Stats().Hidden == 0 {
		t.Errorf("%d rows, marks %v, %+v", len(v.Rows), v.Marks, w.Stats())
	}
}

// A standby keeps seconds, and writes none.
func TestStandbyWritesNothing(t *testing.T) {
	s := testStore(t)
	w := testWriter(s, func(c *Config) { c.InOffice = func() bool { return false } })
	w.Add([]aggregator.Tops{{Rule: "r", Second: epoch0, Span: 1}})
	w.step(t.Context())
	if n := s.client.Keys(t.Context(), "*").Val(); len(n) != 0 {
		t.Errorf("it wrote %v", n)
	}
}

// What is refused of a key is in the seconds that count it, and adds up at each level.
func TestRefused(t *testing.T) {
	s, f := testStore(t), newTraffic(3)
	w := testWriter(s, nil)
	const from = epoch0 + 540
	key := rules.Key{Rule: "search", Text: "GET /search?q=1"}
	for i := range int64(100) {
		tops := f.second(from + i)
		w.Add(tops)
		if i%2 == 1 && i > 10 {
			w.Refused(key, 7, from+i-4, from+i-2) // a key may have no count in either second
			w.Refused(rules.Key{Rule: "search", Text: "GET /search?q=none"}, 7, from, from+i)
		}
		w.step(t.Context())
	}
	for _, columns := range []int{1000, 10} {
		v := read(t, s, from, from+100, columns)
		f.check(t, v)
		sum := int64(0)
		for _, r := range v.Rows {
			for _, c := range r.Cells {
				if c.Refused != published.Unknown {
					if sum += c.Refused; r.Key != "q=1" {
						t.Errorf("%s has %d refused", r.Key, c.Refused)
					}
				}
			}
		}
		if sum < 270 || sum > 7*45 || sum%7 != 0 {
			t.Errorf("%d columns: %d refused", columns, sum)
		}
	}
}

// An instance with many hot keys reports each of them in half a minute. What is refused is divided by
// the counts of these seconds, and exceeds none of them. Redis has it soon, and at the end.
func TestRefusedLongAgo(t *testing.T) {
	s, f := testStore(t), newTraffic(3)
	w := testWriter(s, nil)
	const from = epoch0 + 540
	key := rules.Key{Rule: "search", Text: "GET /search?q=1"}
	refusedOf := func(v *View) (all, exceeding int64) {
		for _, r := range v.Rows {
			for _, c := range r.Cells {
				if c.Refused > 0 {
					all += c.Refused
					exceeding += max(0, c.Refused-c.High)
				}
			}
		}
		return all, exceeding
	}
	for i := range int64(90) {
		w.Add(f.second(from + i))
		if i == 89 { // the minute that began with second 60 is not over for long
			w.Refused(key, 300, from+60, from+90)
		}
		w.step(t.Context())
	}
	for i := range int64(refusedEvery) {
		w.Add(f.second(from + 90 + i))
		w.step(t.Context())
	}
	if all, exceeding := refusedOf(read(t, s, from, from+100, 1000)); all != 300 || exceeding != 0 {
		t.Errorf("%d refused of 300, %d of them more than were counted", all, exceeding)
	}
	w.Refused(key, 1_000_000, from+95, from+100)
	w.Refused(key, 200, from-10_000, from-9_000) // long written
	w.step(t.Context())
	all, exceeding := refusedOf(read(t, s, from, from+100, 1000))
	if all <= 300 || all > 300+5*40 || exceeding != 0 {
		t.Errorf("%d refused, %d of them more than were counted", all, exceeding)
	}
}
