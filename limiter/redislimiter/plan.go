package redislimiter

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/big"
	"sync"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

var (
	//go:embed lua/time.lua
	timeLua string
	//go:embed lua/plain.lua
	plainLua string
	//go:embed lua/head.lua
	headLua string
	//go:embed lua/bucket.lua
	bucketLua string
	//go:embed lua/warmup.lua
	warmupLua string
	//go:embed lua/frames.lua
	framesLua string
	//go:embed lua/window.lua
	windowLua string
	//go:embed lua/run.lua
	runLua string
)

// Each algorithm has its own script, so that a call runs no more code than it needs. mixedScript
// has all of them, for batches.
var (
	bucketScript = newScript(timeLua, plainLua, headLua, bucketLua, runLua)
	warmupScript = newScript(timeLua, headLua, warmupLua, runLua)
	windowScript = newScript(timeLua, headLua, framesLua, windowLua, runLua)
	mixedScript  = newScript(timeLua, plainLua, headLua, bucketLua, warmupLua, framesLua, windowLua, runLua)
)

// plan is a quota in the form that the scripts read.
type plan struct {
	quota  *rules.Quota
	script *script // nil without a limit
	letter byte    // letter of the algorithm, whose states are separate; see key.go
	limit  int64
	// numbers are the packed penalty and limit, whether denials count, and the algorithm's own
	// numbers.
	numbers []byte
	// longest is the longest delay of a Reserve, in µs, that the numbers can represent.
	longest int64
}

// setScript sets the script and the numbers.
func (p *plan) setScript(script *script, letter byte, numbers ...float64) {
	p.script, p.letter = script, letter
	p.numbers = appendNumbers(p.numbers, float64(micros(p.quota.Penalty)), float64(p.limit), flag(p.quota.CountDenied))
	p.numbers = appendNumbers(p.numbers, numbers...)
}

// appendNumbers packs numbers in the form that the scripts unpack.
func appendNumbers(b []byte, numbers ...float64) []byte {
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(n))
	}
	return b
}

const (
	// maxWhole is the bound up to which Lua's floats hold every whole number.
	maxWhole = 1 << 53
	// maxFill bounds the units that an empty bucket lacks, so that as many more may be owed.
	maxFill = 1 << 52
	// fineEnough is the least number of units per permit if the rate cannot be expressed
	// exactly.
	fineEnough = 1 << 19
	// minDebt is the time in µs whose permits a charge may leave owed. It may leave a burst owed
	// if that is more.
	minDebt = 60_000_000
)

func newPlan(q *rules.Quota) (*plan, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	p := &plan{quota: q, limit: q.Burst, longest: maxWhole / 4}
	per := micros(q.Rate.Per)
	switch {
	case q.Burst == rules.Unlimited:
		return p, nil
	case q.Burst > maxFill || per > maxFill:
		return nil, fmt.Errorf("limit.burst %d, limit.rate %q: Redis's scripts count to 2^52 only", q.Burst, q.Rate)
	}
	switch q.Algorithm {
	case "", rules.TokenBucket, rules.GCRA:
		if q.WarmUp > 0 {
			p.warmUp()
			return p, nil
		}
		return p, p.bucket('b')
	case rules.LeakyBucket:
		return p, p.bucket('l')
	case rules.FixedWindow:
		p.window('f', per, p.slots())
	case rules.SlidingLog:
		p.window('s', per, 1)
	case rules.SlidingBlocks:
		blocks := int64(q.Blocks)
		if blocks == 0 {
			blocks = rules.DefaultBlocks
		}
		length := micros((q.Rate.Per-1)/time.Duration(blocks) + 1)
		p.window('k', length*blocks, length)
	default:
		return nil, fmt.Errorf("algorithm %q: %w", q.Algorithm, limiter.ErrUnsupported)
	}
	return p, nil
}

// micros returns d in whole microseconds, rounded up.
func micros(d time.Duration) int64 {
	us := int64(d / time.Microsecond)
	if d%time.Microsecond > 0 {
		us++
	}
	return us
}

func (p *plan) bucket(letter byte) error {
	earn, cost, err := units(p.quota.Rate, p.limit)
	if err != nil {
		return err
	}
	full := p.limit * cost
	debt := maxWhole - 1 - full
	if earn < debt/minDebt {
		debt = min(debt, max(full, minDebt*earn))
	}
	p.setScript(bucketScript, letter, float64(earn), float64(cost), float64(full+debt), float64(p.quota.Missing), flag(p.quota.Shape))
	p.longest = (maxWhole - 1 - full) / earn
	return nil
}

// units returns the rate in whole numbers: the units earned per microsecond and the units per
// permit. It is the exact reduced fraction, unless the burst would exceed the range of the
// scripts. A permit then costs less than two in a million too much, never too little.
func units(r rules.Rate, burst int64) (earn, cost int64, err error) {
	n := new(big.Int).Mul(big.NewInt(r.N), big.NewInt(1000)) // permits in Per ns = n / 1000 in Per µs
	per := big.NewInt(int64(r.Per))
	divisor := new(big.Int).GCD(nil, nil, n, per)
	exactEarn, exactCost := new(big.Int).Div(n, divisor), new(big.Int).Div(per, divisor)
	maxCost := big.NewInt(maxFill / burst)
	if exactCost.Cmp(maxCost) <= 0 && exactEarn.Cmp(big.NewInt(maxFill)) <= 0 {
		return exactEarn.Int64(), exactCost.Int64(), nil
	}
	e := new(big.Int).Div(new(big.Int).Mul(maxCost, n), per) // rounded down
	if e.Cmp(big.NewInt(maxFill)) > 0 {
		e.SetInt64(maxFill)
	}
	c := new(big.Int).Mul(e, per)
	c.Add(c, n).Sub(c, big.NewInt(1)).Div(c, n) // rounded up
	if e.Sign() == 0 || c.Cmp(big.NewInt(fineEnough)) < 0 {
		return 0, 0, fmt.Errorf("limit.burst %d at limit.rate %q: more than Redis's scripts can count; lower the burst", burst, r)
	}
	return e.Int64(), c.Int64(), nil
}

func (p *plan) warmUp() {
	q := p.quota.WithDefaults()
	p.setScript(warmupScript, 'W', float64(q.Rate.Per)/1000, float64(q.Rate.N), float64(q.WarmUp)/1000, q.ColdFactor)
}

// slots returns the value of slots in lua/frames.lua for a fixed window: 0, or a negative number
// that identifies its calendar and zone.
func (p *plan) slots() int64 {
	if p.quota.Calendar == "" {
		return 0
	}
	h := fnv.New32a()
	_, _ = io.WriteString(h, string(p.quota.Calendar)+" "+p.quota.Zone) // never fails
	return -1 - int64(h.Sum32())
}

// window sets the plan of windows of the given span and slot length; see slots.
func (p *plan) window(letter byte, span, length int64) {
	p.setScript(windowScript, letter, float64(span), float64(length))
}

func flag(on bool) float64 {
	if on {
		return 1
	}
	return 0
}

// plans caches the plans of the quotas in use, by pointer. They are few. If callers make a new
// quota for each call, making its plan again costs little.
type plans struct {
	mu      sync.RWMutex
	byQuota map[*rules.Quota]*plan
}

const maxPlans = 1024

var errNoQuota = errors.New("the Op has no Quota")

func (s *plans) planFor(q *rules.Quota) (*plan, error) {
	s.mu.RLock()
	p := s.byQuota[q]
	s.mu.RUnlock()
	if p != nil {
		return p, nil
	}
	if q == nil {
		return nil, errNoQuota
	}
	p, err := newPlan(q)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byQuota == nil || len(s.byQuota) >= maxPlans {
		s.byQuota = make(map[*rules.Quota]*plan)
	}
	s.byQuota[q] = p
	return p, nil
}
