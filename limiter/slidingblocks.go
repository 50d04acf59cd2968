package limiter

import (
	"time"

	"github.com/hotparam/hotparam/rules"
)

// blockFrame is that of sliding blocks: time is cut, from the epoch on, into blocks,
// and the window is the current one and those before it, so many in all. It is as
// short as the time since the current block began and the blocks before: at most Rate.N
// permits pass in any window of Rate.Per less one block.
type blockFrame struct {
	length int64 // of a block, in ns
	span   int64 // of all blocks of a window
}

func newSlidingBlocks(q *rules.Quota, now time.Duration) State {
	return newWindow[blockFrame](q, now)
}

func (blockFrame) of(q *rules.Quota) blockFrame {
	blocks := int64(q.Blocks)
	if blocks < 1 {
		blocks = rules.DefaultBlocks
	}
	length := (int64(q.Rate.Per)-1)/blocks + 1
	return blockFrame{length, length * blocks}
}

func (f blockFrame) slot(t, _ int64) int64 { return t - t%f.length }

func (f blockFrame) leaves(at int64) int64 { return at + f.span }

func (f blockFrame) same(as blockFrame) bool { return f == as }

func (f blockFrame) holds(at, t int64) bool { return at <= t && t < at+f.length }

func (f blockFrame) latest(at, t int64) int64 { return max(at, min(at+f.length-1, t)) }

func (f blockFrame) apart() bool { return false }

// back moves by whole blocks, to what is not sooner. What was not ahead on the old
// clock is not ahead on the new one.
func (f blockFrame) back(at, _, by, t int64) int64 {
	to := max(0, at-by+by%f.length)
	if at <= t+by {
		return min(to, f.slot(t, t))
	}
	return to
}

// from takes it that all was taken at the end of its block, or at the latest instant.
func (f blockFrame) from(old blockFrame, at, _, latest int64) int64 {
	at = max(at, min(at+old.length-1, latest))
	return f.slot(at, at)
}
