package decode

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/wire"
)

// summed returns a packet of a sender that states its sums: the packet's lines, and the counts
// sent before them.
func summed(seq uint64, start time.Duration, sums string, lines ...string) string {
	return strings.Join(append([]string{head(seq, start, 1, 0) + ",b:" + sums}, lines...), "\n")
}

func onAccount(key string, n, number, total int) string {
	return fmt.Sprintf("shop.terms.hot_param.%s:%d|c|k:%x.%x", key, n, number, total)
}

// The missing counts are bounded by the sum that the sender states, and healed by the key's next
// line.
func TestAccounts(t *testing.T) {
	const flush = 100 * time.Millisecond
	first := summed(1, 0, "0.0.1.0.0.0.0", onAccount("a", 5, 1, 5), "shop.terms.hot_param.x:2|c")
	for _, test := range []struct {
		name            string
		packets, want   []string
		healed, retold  int64
		beforeTheAnswer string
	}{
		{name: "nothing is missing", packets: []string{first, summed(2, flush, "5.2.1.0.0.0.5f5e100", onAccount("a", 1, 1, 6))},
			want: []string{`rule 0 "a" 5 0s`, `rule 0 "x" 2 0s`, `rule 0 "a" 1 100ms`}},
		{name: "what a young instance sent before its first packet here is a gap, until it comes",
			packets: []string{summed(3, 2*flush, "4.3.1.0.0.0.5f5e100", onAccount("a", 1, 1, 5)), summed(3, 2*flush, "4.3.1.0.0.0.5f5e100", onAccount("a", 1, 1, 5)),
				summed(2, flush, "4.1.1.0.0.0.5f5e100", "shop.terms.hot_param.x:2|c")},
			want: []string{"gap 1: 3 loose, 4 booked, " + at(time.Unix(0, 0)) + " to 100ms", `rule 0 "a" 1 200ms`,
				"gap 1: 1 loose, 4 booked, " + at(time.Unix(0, 0)) + " to 100ms", `rule 0 "x" 2 100ms`}},
		{name: "a gap is a bound, and a line of the key makes up for it",
			packets: []string{first, summed(3, 2*flush, "9.5.1.0.0.0.5f5e100", onAccount("a", 1, 1, 10))},
			want: []string{`rule 0 "a" 5 0s`, `rule 0 "x" 2 0s`,
				"gap 1: 3 loose, 4 booked, 100ms to 100ms", "gap 1 spares a key, known false", "gap 1 spares a key, known true", "healed 4 of a, 100ms to 100ms",
				"gap 1: 3 loose, 0 booked, 100ms to 100ms", `rule 0 "a" 1 200ms`},
			healed: 4},
		{name: "so does a line that repeats the account",
			packets: []string{first, summed(3, 2*flush, "9.2.1.0.0.0.5f5e100", onAccount("a", 0, 1, 9))},
			want: []string{`rule 0 "a" 5 0s`, `rule 0 "x" 2 0s`, "gap 1: 0 loose, 4 booked, 100ms to 100ms",
				"gap 1 spares a key, known true", "healed 4 of a, 100ms to 100ms", "gap 1: 0 loose, 0 booked, 100ms to 100ms"},
			healed: 4},
		{name: "a line that repeats an account without counts shows that none are missing",
			packets: []string{summed(1, 0, "0.0.1.0.0.0.0", onAccount("a", 0, 1, 0)), summed(2, flush, "0.0.1.0.0.0.5f5e100", onAccount("a", 0, 1, 0)), summed(4, 30*flush, "0.3.1.0.0.0.5f5e100", onAccount("a", 0, 1, 0))},
			want:    []string{"gap 2: 3 loose, 0 booked, 900ms to 900ms", "gap 2 spares a key, known false", "gap 2 spares a key, known true"}},
		{name: "what was found is missing of no gap",
			packets: []string{first, summed(3, 2*flush, "b.2.1.0.0.0.5f5e100", onAccount("a", 0, 1, 9))},
			want: []string{`rule 0 "a" 5 0s`, `rule 0 "x" 2 0s`, "gap 1: 0 loose, 6 booked, 100ms to 100ms",
				"gap 1 spares a key, known true", "healed 4 of a, 100ms to 100ms", "gap 1: 0 loose, 2 booked, 100ms to 100ms"},
			healed: 4},
		{name: "no gap lacks more than all together",
			packets: []string{first, summed(3, 2*flush, "9.2.1.0.0.0.5f5e100"), summed(5, 4*flush, "c.2.1.0.0.0.5f5e100", onAccount("a", 0, 1, 11))},
			want: []string{`rule 0 "a" 5 0s`, `rule 0 "x" 2 0s`, "gap 1: 0 loose, 4 booked, 100ms to 100ms", "gap 2: 0 loose, 3 booked, 300ms to 300ms",
				"gap 1 spares a key, known true", "gap 2 spares a key, known true", "healed 6 of a, 100ms to 300ms",
				"gap 1: 0 loose, 1 booked, 100ms to 100ms", "gap 2: 0 loose, 1 booked, 300ms to 300ms"},
			healed: 6},
		{name: "what comes after all is moved to its time, and counted once",
			packets: []string{first, summed(4, 3*flush, "9.2.1.0.0.0.5f5e100", onAccount("a", 0, 1, 9)), summed(3, 2*flush, "6.2.1.0.0.0.5f5e100", onAccount("a", 3, 1, 9))},
			want: []string{`rule 0 "a" 5 0s`, `rule 0 "x" 2 0s`, "gap 1: 0 loose, 4 booked, 0s to 200ms",
				"gap 1 spares a key, known true", "healed 4 of a, 0s to 200ms", "gap 1: 0 loose, 0 booked, 0s to 200ms", "moved 3 of a, 0s to 200ms"},
			healed: 4, retold: 3},
		{name: "what comes late and was not made up for is counted",
			packets: []string{first, summed(3, 2*flush, "9.5.1.0.0.0.5f5e100"), summed(2, flush, "5.2.1.0.0.0.5f5e100", onAccount("a", 4, 1, 9), "shop.terms.hot_param.x:3|c")},
			want: []string{`rule 0 "a" 5 0s`, `rule 0 "x" 2 0s`, "gap 1: 3 loose, 4 booked, 100ms to 100ms", "gap 1 spares a key, known false",
				"gap 1: 0 loose, 0 booked, 100ms to 100ms", `rule 0 "a" 4 100ms`, `rule 0 "x" 3 100ms`}},
		{name: "packets that held nothing are missed by nobody", packets: []string{first, summed(5, 4*flush, "5.2.1.0.0.0.5f5e100", onAccount("a", 1, 1, 6))},
			want: []string{`rule 0 "a" 5 0s`, `rule 0 "x" 2 0s`, `rule 0 "a" 1 400ms`}},
		{name: "an account that was opened since has its beginning",
			packets: []string{first, summed(3, 2*flush, "9.2.2.0.0.0.5f5e100", onAccount("b", 1, 2, 5))},
			want: []string{`rule 0 "a" 5 0s`, `rule 0 "x" 2 0s`, "gap 1: 0 loose, 4 booked, 100ms to 100ms",
				"healed 4 of b, 100ms to 100ms", "gap 1: 0 loose, 0 booked, 100ms to 100ms", `rule 0 "b" 1 200ms`},
			healed: 4},
		{name: "one that may be older has none",
			packets: []string{summed(107, 0, "0.0.2.0.0.0.0"), summed(109, 2*flush, "4.0.2.0.0.0.5f5e100", onAccount("b", 1, 2, 5))},
			want:    []string{"gap 1: 0 loose, 4 booked, 100ms to 100ms", `rule 0 "b" 1 200ms`}},
		{name: "counts whose beginning is unknown are missing of no later gap",
			packets: []string{summed(107, 0, "0.0.2.0.0.0.0"), summed(109, 2*flush, "4.0.2.0.0.0.5f5e100", onAccount("b", 1, 2, 5)),
				summed(111, 4*flush, "8.0.2.0.0.0.5f5e100", onAccount("b", 0, 2, 8))},
			want: []string{"gap 1: 0 loose, 4 booked, 100ms to 100ms", `rule 0 "b" 1 200ms`, "gap 2: 0 loose, 3 booked, 300ms to 300ms",
				"gap 2 spares a key, known true", "healed 3 of b, 300ms to 300ms", "gap 2: 0 loose, 0 booked, 300ms to 300ms"},
			healed: 3},
		{name: "a sum that is more than is missing is not believed",
			packets: []string{first, summed(3, 2*flush, "9.2.1.0.0.0.5f5e100", onAccount("a", 1, 1, 1000))},
			want:    []string{`rule 0 "a" 5 0s`, `rule 0 "x" 2 0s`, "gap 1: 0 loose, 4 booked, 100ms to 100ms", `rule 0 "a" 1 200ms`}},
		{name: "a sender that could not keep its accounts begins anew",
			packets: []string{first, summed(3, 2*flush, "9.5.1.1.0.0.5f5e100", onAccount("a", 1, 1, 10))},
			want:    []string{`rule 0 "a" 5 0s`, `rule 0 "x" 2 0s`, "gap 1: 3 loose, 4 booked, 100ms to 100ms", `rule 0 "a" 1 200ms`}},
		{name: "what was held back can be of any time before",
			packets: []string{first, summed(3, 2*flush, "9.2.1.0.1.0.5f5e100", onAccount("a", 0, 1, 9))},
			want: []string{`rule 0 "a" 5 0s`, `rule 0 "x" 2 0s`, "gap 1: 0 loose, 4 booked, " + at(time.Unix(0, 0)) + " to 100ms",
				"gap 1 spares a key, known true", "healed 4 of a, " + at(time.Unix(0, 0)) + " to 100ms", "gap 1: 0 loose, 0 booked, " + at(time.Unix(0, 0)) + " to 100ms"},
			healed: 4},
		{name: "without sums accounts say nothing", packets: []string{head(1, 0, 1, 0) + "\n" + onAccount("a", 5, 1, 5), head(3, flush, 1, 0) + "\n" + onAccount("a", 1, 1, 9)},
			want: []string{`rule 0 "a" 5 0s`, "lost 0s", `rule 0 "a" 1 100ms`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got heard
			d := NewDecoder(decoderRules(), wire.Plain)
			for _, p := range test.packets {
				d.Packet([]byte(p), noon.Add(time.Second), &got)
			}
			for i := range got {
				if rest, ok := strings.CutPrefix(got[i], "lost "); ok {
					got[i] = "lost " + strings.Replace(rest, "1s", "0s", 1)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("told\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
			if s := d.Stats(); s.Healed != test.healed || s.Retold != test.retold {
				t.Errorf("%d healed, %d retold", s.Healed, s.Retold)
			}
		})
	}
}

// Counts that may belong to a forgotten gap, one that is out of all windows, are of that gap's
// time at the earliest. They do not pass for counts of the remaining gap.
func TestCountsOfForgottenGaps(t *testing.T) {
	const flush = 100 * time.Millisecond
	var got heard
	d := NewDecoder(decoderRules(), wire.Plain)
	for _, p := range []struct {
		at   time.Duration
		text string
	}{
		{flush, summed(1, 0, "0.0.1.0.0.0.0", onAccount("a", 5, 1, 5))},
		{3 * flush, summed(3, 2*flush, "9.0.2.0.0.0.5f5e100")}, // 4 are missing, and an account was opened
		{time.Minute, summed(4, time.Minute-flush, "9.0.2.0.0.0.5f5e100", onAccount("a", 1, 1, 6))},
		{time.Minute + 2*flush, summed(6, time.Minute+flush, "e.0.2.0.0.0.5f5e100", onAccount("b", 1, 2, 5))},
	} {
		d.Packet([]byte(p.text), noon.Add(p.at), &got)
	}
	want := heard{
		`rule 0 "a" 5 0s`, "gap 1: 0 loose, 4 booked, 100ms to 100ms", "gap 1 spares a key, known true", `rule 0 "a" 1 59.9s`,
		"gap 3: 0 loose, 4 booked, 1m0s to 1m0s", "healed 4 of b, 100ms to 1m0s", `rule 0 "b" 1 1m0.1s`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("told\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// No key ever counts more than was sent, nor less once the missing counts are added, although
// packets are lost, duplicated and reordered at random. After the last line of each key all of its
// counts are there, if the decoder was there from the beginning.
func TestAccountsNeverClaimTooMuch(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 7))
		const keys = 6
		type sent struct {
			seq  uint64
			text string
		}
		var packets []sent
		var truth, number, total [keys]int
		opened, booked, loose := 0, 0, 0
		var upTo [61]int // all that was sent up to a packet
		var booking [61][keys]accountLine
		seldom := 1 + int(seed/2%4)
		for seq := uint64(1); seq <= 60; seq++ {
			bookedBefore, looseBefore := booked, loose
			var lines []string
			for k := range keys {
				n := rng.IntN(4)
				if rng.IntN(3) == 0 || seq > 57 {
					n = 0
				}
				truth[k] += n
				if k == 0 && n > 0 { // it has no account
					lines = append(lines, fmt.Sprintf("shop.terms.hot_param.k%d:%d|c", k, n))
					loose += n
				} else if k > 0 && (n > 0 || number[k] > 0 && rng.IntN(seldom) == 0 || seq > 57 && number[k] > 0) {
					if number[k] == 0 {
						opened++
						number[k] = opened
					}
					total[k] += n
					booked += n
					booking[seq][k] = accountLine{n, true}
					lines = append(lines, onAccount(fmt.Sprintf("k%d", k), n, number[k], total[k]))
				}
			}
			sums := fmt.Sprintf("%x.%x.%x.0.0.0.5f5e100", bookedBefore, looseBefore, opened)
			upTo[seq] = booked + loose
			rng.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
			packets = append(packets, sent{seq, summed(seq, time.Duration(seq)*100*time.Millisecond, sums, lines...)})
		}
		late := 0
		if seed%2 == 1 {
			late = 1 + rng.IntN(20)
		}
		packets = packets[late:]
		first, last := packets[0], packets[len(packets)-1]
		var arrive []sent
		for _, p := range packets[1 : len(packets)-1] {
			if rng.IntN(5) > 0 {
				arrive = append(arrive, p)
			}
			if rng.IntN(8) == 0 {
				arrive = append(arrive, p)
			}
		}
		for range 40 { // neighbours overtake each other
			if i := rng.IntN(len(arrive) - 1); true {
				arrive[i], arrive[i+1] = arrive[i+1], arrive[i]
			}
		}
		sum, newest := &keySums{of: make(map[string]int64)}, uint64(0)
		var came [61]bool
		d := NewDecoder(decoderRules(), wire.Plain)
		for _, p := range slices.Concat([]sent{first}, arrive, []sent{last}) {
			d.Packet([]byte(p.text), noon.Add(time.Minute), sum)
			counted := int64(0)
			for k := range keys {
				got := sum.of[fmt.Sprintf("k%d", k)]
				if got > int64(truth[k]) {
					t.Fatalf("seed %d: after packet %d %d are counted of k%d, %d were sent", seed, p.seq, got, k, truth[k])
				}
				counted += got
			}
			newest, came[p.seq] = max(newest, p.seq), true
			for _, g := range sum.gaps {
				lacks := 0
				for seq := newest - 1; seq > uint64(late); seq-- {
					at := noon.Add(time.Duration(seq) * 100 * time.Millisecond)
					if came[seq] || at.After(g.To) || !at.After(g.From) && !at.Equal(g.To) {
						continue
					}
					for k := 1; k < keys; k++ {
						told := false
						for q := seq + 1; q <= newest; q++ {
							told = told || came[q] && booking[q][k].sent
						}
						if !told {
							lacks += booking[seq][k].n
						}
					}
				}
				if int64(lacks) > g.Booked {
					t.Fatalf("seed %d: after packet %d gap %d lacks %d on accounts, told are %d", seed, p.seq, g.ID, lacks, g.Booked)
				}
			}
			if all := int64(upTo[newest] - upTo[late]); counted > int64(upTo[60]-upTo[late]) || counted+sum.missing() < all {
				t.Fatalf("seed %d: after packet %d %d are counted and %d missing, %d were sent", seed, p.seq, counted, sum.missing(), all)
			}
		}
		if late > 0 {
			continue
		}
		for k := 1; k < keys; k++ {
			if got := sum.of[fmt.Sprintf("k%d", k)]; got != int64(truth[k]) {
				t.Errorf("seed %d: %d are counted of k%d in the end, %d were sent", seed, got, k, truth[k])
			}
		}
		if got := sum.of["k0"]; got+sum.missing() < int64(truth[0]) {
			t.Errorf("seed %d: %d are counted of k0 and %d missing, %d were sent", seed, got, sum.missing(), truth[0])
		}
		if sum.booked() != 0 {
			t.Errorf("seed %d: %d are missing on accounts though all have come", seed, sum.booked())
		}
	}
}

// accountLine is a packet's line of a key with an account.
type accountLine struct {
	n    int
	sent bool
}

// keySums adds up the counts and gaps that a decoder reports.
type keySums struct {
	nobody
	of   map[string]int64
	gaps map[uint64]Gap
}

func (s *keySums) Count(c Count)                       { s.of[string(c.Text)] += c.N }
func (s *keySums) AddHealedCount(c Count, _ time.Time) { s.of[string(c.Text)] += c.N }

func (s *keySums) RecordGap(g Gap) {
	if s.gaps == nil {
		s.gaps = make(map[uint64]Gap)
	}
	s.gaps[g.ID] = g
}

func (s *keySums) missing() (n int64) {
	for _, g := range s.gaps {
		n += g.Loose + g.Booked
	}
	return n
}

func (s *keySums) booked() (n int64) {
	for _, g := range s.gaps {
		n += g.Booked
	}
	return n
}

// Accounts beyond their memory limit are not remembered, and no claims are made about their keys.
func TestAccountsAreBounded(t *testing.T) {
	d := NewDecoder(testRules(hotRule("r", 100, time.Second)), wire.Plain)
	d.LimitAccounts(3 * accountSize)
	var sum counter
	for i := range 10 {
		m := wire.Meta{Instance: []byte("i"), Incarnation: 1, Seq: uint64(i) + 1, Start: noon.UnixNano(), Held: 1, Sums: wire.Sums{Stated: true, Booked: uint64(i), Opened: uint64(i) + 1}}
		line := wire.AppendKey([]byte("shop.r"), wire.Plain, fmt.Appendf(nil, "k%d", i))
		line = wire.AppendAccount(append(line, ":1|c"...), wire.Account{Number: uint64(i) + 1, Total: 1})
		d.Packet(append(append(wire.AppendMeta(nil, m), '\n'), line...), noon, &sum)
	}
	if n := len(d.senders.byName["i"].accounts.keys); n != 3 || d.senders.accountsLeft != 0 || d.Stats().Counts != 10 {
		t.Errorf("%d accounts are remembered, room for %d; %d counts", n, d.senders.accountsLeft, d.Stats().Counts)
	}
}
