package semaphore

import "github.com/hotparam/hotparam/rules"

// crowd counts the held permits of a stripe's keys for which there was no room. It is a
// count-min sketch (Cormode and Muthukrishnan, 2005). A row has one counter for each key, which
// others may share. A key holds no more than the least of its counters, so never more than its
// permits. A release subtracts from the same counters. The lock of the stripe guards it.
type crowd struct {
	held int64 // permits of all these keys
	mask uint64
	rows [crowdRows][]int64
}

const crowdRows = 4

// minCrowd is the smallest number of counters in a row.
const minCrowd = 64

// counters returns a key's counter in each row.
func (c *crowd) counters(hash uint64) (all [crowdRows]*int64) {
	for i := range all {
		hash = (hash ^ hash>>31) * 0x9e3779b97f4a7c15
		all[i] = &c.rows[i][(hash^hash>>29)&c.mask]
	}
	return all
}

// holds returns an upper bound of the permits that a key holds.
func (c *crowd) holds(hash uint64) int64 {
	if c == nil || c.held == 0 {
		return 0
	}
	all := c.counters(hash)
	least := *all[0]
	for _, n := range all[1:] {
		least = min(least, *n)
	}
	return least
}

func (c *crowd) add(hash uint64, n int64) {
	c.held += n
	for _, counter := range c.counters(hash) {
		*counter += n
	}
}

// grantCrowded is like grantOrQueue, for a key without a place of its own, which holds at most held
// permits. Such a key does not wait.
func (st *stripe) grantCrowded(hash uint64, ask *Request, held int64, d *rules.Decision) *slot {
	st.stats.Crowded++
	d.Limit = ask.Permits
	if ask.N > ask.Permits-held {
		st.stats.Busy++
		d.Reason, d.Remaining, d.RetryAfter = rules.ReasonBusy, max(ask.Permits-held, 0), crowdRetry
		return nil
	}
	if st.crowd == nil {
		st.crowd = newCrowd(st.semaphore.max)
	}
	st.crowd.add(hash, ask.N)
	d.Allowed, d.Reason, d.Remaining = true, rules.ReasonWithin, ask.Permits-held-ask.N
	k := &keyState{hash: hash, stripe: st, permits: ask.Permits, crowded: true, mean: 1}
	return st.grant(k, ask.N)
}

func newCrowd(keys int64) *crowd {
	size := int64(minCrowd)
	for size*stripeCount < keys {
		size *= 2
	}
	c := &crowd{mask: uint64(size - 1)}
	for i := range c.rows {
		c.rows[i] = make([]int64, size)
	}
	return c
}
