package published

import (
	"errors"
	"math"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// hold is the treatment of a key that is hot by its cost. Times are in milliseconds. Readers of an
// earlier version ignore it, and do not limit the key.
type hold struct {
	Pool    string    `json:"pool"`
	Permits int64     `json:"permits"`
	Stage   HoldStage `json:"stage"`
	Share   float64   `json:"share"`
	Each    float64   `json:"each_ms"`
	Usual   float64   `json:"usual_ms"`
	Slow    float64   `json:"slow_ms"`
	Now     float64   `json:"now_ms"`
}

func holdOf(h *Hold) *hold {
	if h == nil {
		return nil
	}
	ms := func(d time.Duration) float64 {
		return min(float64(max(0, d).Microseconds())/1000, maxTTLMillis)
	}
	return &hold{h.Pool, h.Permits, h.Stage, min(max(0, finite(h.Share)), 1), ms(h.Each), ms(h.Usual), ms(h.Slow), ms(h.Now)}
}

var errHold = errors.New("hold: the pool is no name, or a number is out of bounds")

// parse returns the hold, or an error if it is out of bounds. A stage of a later version makes no
// hold, so that the key is listed and not limited.
func (h *hold) parse() (*Hold, error) {
	if h == nil {
		return nil, nil
	}
	known := h.Stage == HoldTrial || h.Stage == HoldKept || h.Stage == HoldSuspected
	least, most := min(h.Share, h.Each, h.Usual, h.Slow, h.Now), max(h.Each, h.Usual, h.Slow, h.Now)
	if !rules.ValidRuleID(h.Pool) || h.Permits < 0 || h.Permits > rules.MaxConcurrency || least < 0 || h.Share > 1 || most > maxTTLMillis {
		return nil, errHold
	}
	if !known {
		return nil, nil
	}
	d := func(ms float64) time.Duration { return time.Duration(math.Round(ms*1000)) * time.Microsecond }
	return &Hold{Pool: h.Pool, Permits: h.Permits, Stage: h.Stage, Share: h.Share, Each: d(h.Each), Usual: d(h.Usual), Slow: d(h.Slow), Now: d(h.Now)}, nil
}
