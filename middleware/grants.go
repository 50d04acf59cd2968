package middleware

import (
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/fleet"
)

// grants are the permits that the limits of this process have granted a request. They are
// returned if another limit refuses it.
type grants struct {
	list []grant
	keys []byte // the grants' keys, one after the other
}

// grant is n permits granted by one limit, with the data needed to return them. If n is 0, as
// for a rule that counts costs, only the count in state is corrected.
type grant struct {
	n       int64
	mark    int64
	receipt limiter.Receipt
	state   *hotState // of the hot key, or nil

	stock    *fleet.Stock    // the stock that granted it, with its version as the mark, or nil
	bucket   *limiter.Bucket // the bucket that granted it, or nil if keyed did
	keyed    *limiter.Keys
	hash     uint64 // the key's hash
	from, to int    // the key in grants.keys
}

// addBucket records the grant of a bucket.
func (g *grants) addBucket(b *limiter.Bucket, state *hotState, got *limiter.Result) {
	g.list = append(g.list, grant{bucket: b, state: state, n: got.Taken, mark: got.Mark, receipt: got.Receipt})
}

// addKeyed records the grant of a table of keys.
func (g *grants) addKeyed(keyed *limiter.Keys, hash uint64, key []byte, got *limiter.Result) {
	from := len(g.keys)
	g.keys = append(g.keys, key...)
	g.list = append(g.list, grant{keyed: keyed, hash: hash, from: from, to: len(g.keys), n: got.Taken, mark: got.Mark, receipt: got.Receipt})
}

// reset drops all grants and keeps the memory.
func (g *grants) reset() {
	if len(g.list) > 0 {
		clear(g.list)
		g.list, g.keys = g.list[:0], g.keys[:0]
	}
}

func (g *grant) giveBack(now time.Duration, keys []byte) {
	g.state.revoke()
	back := limiter.Request{Kind: limiter.Return, N: g.n, Mark: g.mark, Receipt: g.receipt}
	switch {
	case g.n == 0:
	case g.stock != nil:
		g.stock.Return(g.n, g.mark)
	case g.bucket != nil:
		g.bucket.Do(now, back)
	default:
		g.keyed.Do(now, g.hash, keys[g.from:g.to], back)
	}
}
