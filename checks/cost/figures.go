package cost

import (
	"net/http"
	"slices"
	"time"
)

// Figures is what clients of innocent keys, or of the causes, got in a span of time, by when their requests were
// due.
type Figures struct {
	Served   int           // answered with 200
	Refused  int           // answered with 429 or 503
	Failed   int           // answered with an error, or not at all
	P50, P99 time.Duration // of the served and the failed
}

// Between returns the figures of a span of time since the beginning of the run.
func (r *Result) Between(from, to time.Duration) Figures { return r.figures(from, to, false) }

// causesBetween returns the figures of the causes' requests.
func (r *Result) causesBetween(from, to time.Duration) Figures { return r.figures(from, to, true) }

func (r *Result) figures(from, to time.Duration, causes bool) (f Figures) {
	var took []time.Duration
	for i, req := range r.requests {
		if (req.cause != "") != causes || req.due < from || req.due >= to {
			continue
		}
		switch r.samples[i].Status {
		case http.StatusOK:
			f.Served++
		case http.StatusTooManyRequests, http.StatusServiceUnavailable:
			f.Refused++
			continue
		default:
			f.Failed++
		}
		took = append(took, r.samples[i].Took)
	}
	if len(took) > 0 {
		slices.Sort(took)
		f.P50, f.P99 = took[len(took)/2], took[len(took)*99/100]
	}
	return f
}

// Seconds returns the figures of each second of a span of time.
func (r *Result) Seconds(from, to time.Duration) (all []Figures) {
	for at := from; at+time.Second <= to; at += time.Second {
		all = append(all, r.Between(at, at+time.Second))
	}
	return all
}

// typicalP99 returns the median of the p99 of each second of a span of time. Other programs of the
// machine that run for a second or two do not change it.
func (r *Result) typicalP99(from, to time.Duration) time.Duration {
	var all []time.Duration
	for _, f := range r.Seconds(from, to) {
		if f.P99 > 0 {
			all = append(all, f.P99)
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}
