package fleet

import (
	"context"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// Lender keeps the buckets that instances hold permits of. It is safe for concurrent use.
type Lender interface {
	// Settle settles the accounts of asks and sets answers[i] to the answer to asks[i]; both
	// slices have the same length. An answer with an Err settled nothing, or it is unknown
	// whether it did. It honours the deadline of ctx.
	Settle(ctx context.Context, asks []Ask, answers []Answer)
	// Patience is how long a request waits for a settlement.
	Patience() time.Duration
}

// Ask is the account of one stock. Numbers are running totals, so that an ask that is lost or
// whose answer is lost makes up for itself with the next one.
type Ask struct {
	Name, Key string       // those of a [limiter.Op]
	Quota     *rules.Quota // must not be changed while in use
	Holder    string       // identifies the stock

	Incarnation int64 // Incarnation of the last answer; 0 for a stock that begins
	Number      int64 // increases with each ask of the stock
	Spent       int64 // permits spent since the stock began
	Hold        int64 // permits that it has, and keeps
	Want        int64 // more permits that it wants
	Keep        int64 // free permits that are not granted, as a reserve for requests of more priority
	Demand      float64
	Period      time.Duration // time to the next ask
	Lasts       time.Duration // time for which permits are granted
	Silent      time.Duration // time since the first ask that was not answered; 0 while some are
	// Owing means that more may have been spent than was held, since costs are known late.
	Owing bool
}

// Answer is the answer to an [Ask].
type Answer struct {
	Err         error
	Stale       bool  // a later ask has been settled before
	Granted     int64 // permits, at most Want
	Valid       bool  // whether the permits in Hold are still valid
	Incarnation int64 // identifies the state of the bucket's accounts; it changes if that is lost
	// Wait is the time before which another ask will get nothing. It is 0 if the ask got all, or
	// may get more soon.
	Wait       time.Duration
	Free       int64         // permits left in the bucket, without those of Keep
	Instances  int           // number of stocks with demand
	ResetAfter time.Duration // time until the bucket is full
}

// Bounds of a period.
const (
	minPeriod = 20 * time.Millisecond
	maxPeriod = 50 * time.Millisecond
	// lastsFor is the number of periods for which a stock lasts.
	lastsFor = 4
)

// period returns the time between two asks for a quota, with a round trip of so long.
func period(q *rules.Quota, trip time.Duration) time.Duration {
	fill := time.Duration(float64(q.Burst) * float64(q.Rate.Per) / float64(q.Rate.N))
	return max(min(max(fill/4, minPeriod), maxPeriod), trip*3/2)
}

// perSecond returns the permits that a quota earns in a second.
func perSecond(q *rules.Quota) float64 {
	return float64(q.Rate.N) * float64(time.Second) / float64(q.Rate.Per)
}
