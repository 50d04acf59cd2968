package limiter

import (
	"time"

	"github.com/hotparam/hotparam/rules"
)

// blockFrame is the frame of sliding blocks. Time is cut into blocks, from the epoch on. The
// window is the current block and those before it, Quota.Blocks in all. So its length is the
// time since the current block began plus the blocks before: at most Rate.N permits pass in any
// window of Rate.Per less one block.
type blockFrame struct {
	length int64 // length of a block, in ns
	span   int64 // length of all blocks of a window
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

// back moves a slot by whole blocks, to the instant at−by or later. A slot that was not ahead
// on the old clock is not ahead on the new one.
func (f blockFrame) back(at, _, by, t int64) int64 {
	to := max(0, at-by+by%f.length)
	if at <= t+by {
		return min(to, f.slot(t, t))
	}
	return to
}

// from assumes that all permits were taken at the end of their block, or at the latest instant.
func (f blockFrame) from(old blockFrame, at, _, latest int64) int64 {
	at = max(at, min(at+old.length-1, latest))
	return f.slot(at, at)
}
