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

func (blockFrame) forQuota(q *rules.Quota) blockFrame {
	blocks := int64(q.Blocks)
	if blocks < 1 {
		blocks = rules.DefaultBlocks
	}
	length := (int64(q.Rate.Per)-1)/blocks + 1
	return blockFrame{length, length * blocks}
}

func (f blockFrame) slot(t, _ int64) int64 { return t - t%f.length }

func (f blockFrame) expiryOf(start int64) int64 { return start + f.span }

func (f blockFrame) equals(other blockFrame) bool { return f == other }

func (f blockFrame) holds(start, t int64) bool { return start <= t && t < start+f.length }

func (f blockFrame) latestIn(start, t int64) int64 { return max(start, min(start+f.length-1, t)) }

func (f blockFrame) slotIsWindow() bool { return false }

// placeAfterReset moves a slot by whole blocks, to the instant start−distance or later. A slot that
// was not ahead on the old clock is not ahead on the new one.
func (f blockFrame) placeAfterReset(start, _, distance, t int64) int64 {
	place := max(0, start-distance+distance%f.length)
	if start <= t+distance {
		return min(place, f.slot(t, t))
	}
	return place
}

// placeFrom assumes that all permits were taken at the end of their block, or at the latest
// instant.
func (f blockFrame) placeFrom(old blockFrame, start, _, latest int64) int64 {
	start = max(start, min(start+old.length-1, latest))
	return f.slot(start, start)
}
