package limiter

import (
	"math"
	"math/bits"
	"slices"
)

// takeLine is the content of a bucket. Takes form a line, from now to the word, and are earned in
// that order. The line determines how much of a take can still be returned, and how takes are
// converted to another quota.
type takeLine struct {
	word int64 // see gcra
	// due is the latest instant promised to a reservation, and late the word as it will be
	// then. If late is 0, there is no reservation. Reservations are used when they were
	// promised. Under a quota with a higher rate the word alone would let later takes be used
	// at the same time. So both words are in force, and each is converted separately from quota
	// to quota.
	due, late int64
	// back is the total of ns that were returned from within the line. A take's mark is the
	// word after it plus back at that time. Its place is its mark minus the present back. A
	// return counts as one from the head of the line, since a mark names a place and not the
	// take at that place. Takes before it then appear to have moved up. They may get back too
	// little, never too much. Only the final return of the last take shortens the line instead,
	// so takes that are returned in reverse order are all restored in full.
	back int64
	born int64 // time of creation; earlier takes are not in the line
	quotaChange
}

// quotaChange is the last change of a bucket's quota. The zero value means that there was none.
type quotaChange struct {
	changedAt int64 // time of the change
	mark      int64 // mark of the end of the line then; marks up to it are of earlier quotas
	fastest   int64 // ns, the shortest interval of the earlier quotas
}

// mark returns the mark of the latest take. If the clock shows a century and much was returned,
// marks are the greatest number.
func (l *takeLine) mark() int64 { return l.word + min(l.back, math.MaxInt64-l.word) }

// includeReservations sets l.word to the word in force at t, which includes reservations due later.
// Passing the result to excludeReservations undoes that, and keeps takes from in between.
func (l *takeLine) includeReservations(t int64) (offsets wordOffsets) {
	if l.late == 0 { // the common case
		return wordOffsets{}
	}
	if l.due <= t {
		l.word, l.late, l.due = max(l.word, l.late), 0, 0
		return wordOffsets{}
	}
	word := max(l.word, t)
	l.word = max(word, l.late)
	return wordOffsets{l.word - word, l.word - l.late}
}

// wordOffsets holds the distances of both words below the lifted one.
type wordOffsets struct{ word, late int64 }

func (l *takeLine) excludeReservations(offsets wordOffsets) {
	if l.late > 0 {
		l.late = l.word - offsets.late
	}
	l.word -= offsets.word
}

// recordPromise records that the latest take may be used at due, a later instant. offsets is the
// result of includeReservations.
func (l *takeLine) recordPromise(due int64, offsets wordOffsets) {
	if due >= l.due {
		l.due, l.late = due, l.word+offsets.word
	}
}

// convertLine converts the line of a bucket of old to one of g at t. The number of missing tokens
// stays the same, whatever the burst.
func (g *gcra) convertLine(old *gcra, l *takeLine, t int64) {
	if l.due <= t {
		l.word, l.late, l.due = max(l.word, l.late), 0, 0
	}
	end := l.mark()
	if l.word > t {
		l.word = t + rescaled(l.word-t, g.interval, old.interval)
	}
	if l.late > l.due {
		l.late = l.due + rescaled(l.late-l.due, g.interval, old.interval)
	}
	fastest := old.interval
	if l.fastest > 0 {
		fastest = min(fastest, l.fastest)
	}
	l.back, l.quotaChange = end-l.word, quotaChange{t, end, fastest}
}

// moveInstants moves all instants of l by leap, to a clock that shows t. Takes on the clock before
// cannot be returned.
func (l *takeLine) moveInstants(leap, t int64) {
	for _, p := range []*int64{&l.word, &l.due, &l.late} {
		*p = max(0, *p+leap)
	}
	l.back, l.born, l.quotaChange = 0, t, quotaChange{}
}

// returnTokens executes ask, a Return, on l at t. A Mark of 0 means the latest take.
func (g *gcra) returnTokens(l *takeLine, t int64, ask *Request) {
	n, mark, taken := ask.N, ask.Mark, int64(ask.Receipt.At)
	missing := l.word - t
	if n <= 0 || missing <= 0 || 0 < taken && (taken < l.born || taken > t+maxBack) {
		return
	}
	token, place, passed := g.interval, mark-l.back, max(0, t-taken)
	last := mark == 0 || place == l.word
	if l.fastest > 0 && mark <= l.quotaChange.mark {
		slower := max(g.interval, l.fastest)
		if passed > 0 && taken < l.quotaChange.changedAt {
			passed = rescaled(passed, slower, l.fastest)
		}
		place = l.quotaChange.mark - l.back - rescaled(max(0, l.quotaChange.mark-mark), slower, l.fastest)
	}
	if last {
		place = l.word
	}
	claimed := min(n, missing/token+1) * token
	left := min(claimed, place-t)
	if 0 < taken && taken <= t {
		left = max(left, claimed-passed) // since then the bucket earned no more than that, of any take
	}
	left = min(left, missing)
	if left <= 0 {
		return
	}
	l.word -= left
	if l.late > 0 {
		l.late = max(l.late-left, 1)
	}
	// The rest after a partial return keeps its mark, which the next take must not get.
	if !last || ask.Keep > 0 || l.mark() < l.quotaChange.mark {
		l.back += left
	}
}

// rescaled returns ns × to / from, rounded up, and at most the farthest that a word may be
// ahead.
func rescaled(ns, to, from int64) int64 {
	const limit = maxFill + maxDebt
	if to == from {
		return min(ns, limit)
	}
	hi, lo := bits.Mul64(uint64(ns), uint64(to))
	if hi >= uint64(from) {
		return limit
	}
	n, remainder := bits.Div64(hi, lo, uint64(from))
	if remainder > 0 {
		n++
	}
	return int64(min(n, uint64(limit)))
}

// owes returns the debt of a line of g at t, and whether less than one token is left.
func (l *takeLine) owes(g *gcra, t int64) (owed debt, spent bool) {
	word := max(l.word, l.late)
	if word <= t {
		return debt{}, false
	}
	owed = debt{debtUntil: word, debtAt: word, debtCount: speedOf(g.interval), debtMark: word + min(l.back, math.MaxInt64-word)}
	if l.late > 0 {
		owed[debtDue] = l.due
	}
	return owed, g.free(word, t) < g.interval
}

// indebt puts a new line of g into debt at t. The line's own marks come after all others.
func (l *takeLine) indebt(g *gcra, owed *debt, t int64) {
	l.word = max(l.word, t+missing(owed[:], t, g.interval))
	l.back = max(0, owed[debtMark]-l.word)
	if due := owed[debtDue]; due > t {
		l.due, l.late = due, max(l.word, due+missing(owed[:], due, g.interval))
	}
}

// rest returns the fields besides word and born: none if they are all zero, or else all of them.
func (l *takeLine) rest() []int64 {
	if *l == (takeLine{word: l.word, born: l.born}) {
		return nil
	}
	return []int64{l.due, l.late, l.back, l.quotaChange.changedAt, l.quotaChange.mark, l.fastest}
}

// setRest sets the fields that rest returned, and reports whether they are valid.
func (l *takeLine) setRest(n []int64) bool {
	if len(n) == 0 {
		return true
	}
	if len(n) != 6 || slices.Min(n) < -maxNow || slices.Max(n) > maxNow {
		return false
	}
	l.due, l.late, l.back, l.quotaChange = n[0], n[1], n[2], quotaChange{n[3], n[4], n[5]}
	return l.due >= 0 && l.late >= 0 && l.quotaChange.changedAt >= 0 && l.fastest >= 0
}
