package decode

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Packets are lost and come late at random. The reported shortfall of a rule is never less
// than the true one, and is zero once all packets have arrived.
func TestRuleSumsBoundWhatIsMissing(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 3))
		type packet struct {
			seq    uint64
			told   []uint64 // nil: it does not tell
			counts []uint64
		}
		sent := make([]uint64, 4)
		var all []packet
		for seq := uint64(1); seq <= 60; seq++ {
			p := packet{seq: seq, counts: make([]uint64, 4)}
			if rng.IntN(3) > 0 {
				p.told = slices.Clone(sent)
			}
			for i := range sent {
				p.counts[i] = uint64(rng.IntN(5))
				sent[i] += p.counts[i]
			}
			all = append(all, p)
		}
		var s ruleSums
		var newest uint64
		came := make(map[uint64]bool)
		missingBetween := func(from, to uint64, i int) (n uint64) {
			for _, p := range all {
				if from <= p.seq && p.seq < to && !came[p.seq] {
					n += p.counts[i]
				}
			}
			return n
		}
		var late []packet
		arrive := func(p packet) {
			if p.seq > newest {
				newest = p.seq
				if p.told != nil {
					between, since := s.take(p.seq, p.told)
					for i := range between {
						if want := missingBetween(since, p.seq, i); between[i] < want {
							t.Fatalf("seed %d: %d of rule sum %d are missing between %d and %d, told is %d", seed, want, i, since, p.seq, between[i])
						}
					}
				}
			}
			s.note(p.seq, p.counts)
			came[p.seq] = true
		}
		for _, p := range all {
			switch rng.IntN(8) {
			case 0:
				late = append(late, p)
			default:
				arrive(p)
			}
			if len(late) > 0 && rng.IntN(6) == 0 {
				arrive(late[0])
				late = late[1:]
			}
		}
		for _, p := range late {
			arrive(p)
		}
		between, _ := s.take(61, sent)
		for i, n := range between {
			if s.missing[i] != 0 || n != 0 {
				t.Errorf("seed %d: all have come, and %d of rule sum %d are missing", seed, n, i)
			}
		}
	}
}
