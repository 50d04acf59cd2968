package chaos

import (
	"fmt"
	"net/http"
	"time"

	"github.com/hotparam/hotparam/checks/chaos/oracle"
)

// reply is the outcome of a request to an instance.
type reply struct {
	api         *api
	life        int64 // the instance's life at the time of sending
	route, key  string
	sent        time.Duration
	status      int
	statesLimit bool // whether the answer states a limit
	err         error
}

// recordAnswer records an answer that has just arrived.
func (j *judge) recordAnswer(r reply) {
	now := j.now() // read before waiting for the lock
	j.mu.Lock()
	defer j.mu.Unlock()
	j.requests++
	j.checkAnswer(r, now)
	admitted, refused := r.status == http.StatusOK, r.status == http.StatusTooManyRequests
	if refused {
		j.limited++
	}
	l := j.limitOf(r.route, r.key, r.api, r.life)
	switch r.route {
	case "items":
		if refused {
			j.hot[r.route][r.api.index].Refused(r.sent)
		}
	case "search":
		if admitted {
			j.hot[r.route][r.api.index].Passed(r.sent)
		} else if refused {
			j.hot[r.route][r.api.index].Refused(r.sent)
		}
	case "fleet": // an instance states the limit once it knows that the key is hot
		if admitted && !r.statesLimit {
			j.hot[r.route][r.api.index].Passed(r.sent)
			return
		} else if admitted || refused {
			j.hot[r.route][r.api.index].Refused(r.sent)
		}
	case "solo":
		if admitted || refused {
			j.decider[r.api.index].Answered(r.sent, admitted)
		}
	}
	if l != nil && admitted {
		l.Admit(r.sent, now)
	}
}

// checkAnswer records a doubt if a request failed or was slow without an excuse.
func (j *judge) checkAnswer(r reply, now time.Duration) {
	for _, f := range j.failing[r.api.index] {
		if f.From <= now && r.sent-3*j.stalls.Within(oracle.Span{From: r.sent, To: now}) <= f.To {
			return
		}
	}
	d := doubt{answered: now, sent: r.sent, bound: maxLatency}
	switch {
	case r.route == "wait":
		d.bound += redisTimeout + maxWait
	case r.route == "solo" || rolling[r.route].shared:
		d.bound += redisTimeout
		fallthrough
	default:
		j.slowest = max(j.slowest, now-r.sent)
	}
	took := (now - r.sent).Round(time.Millisecond)
	switch {
	case r.err != nil && took < requestTimeout:
		d.text = fmt.Sprintf("failed after %v: %v", took, r.err)
		d.bound = 0
	case r.err == nil && r.status != http.StatusOK && r.status != http.StatusTooManyRequests:
		d.text = fmt.Sprintf("status %d", r.status)
		d.bound = 0
	case now > r.sent+d.bound:
		d.text = fmt.Sprintf("answered after %v, at most %v: %v", took, d.bound, r.err)
	default:
		return
	}
	d.subject = fmt.Sprintf("GET /%s?%s at %s", r.route, r.key, r.api.name)
	j.doubts = append(j.doubts, d)
}

// doubt is an answer that may be a violation. It is none if the machine stood still, which is
// known only once the stall has ended.
type doubt struct {
	answered, sent, bound time.Duration // bound is the longest time allowed; zero means any time
	subject, text         string
}

// reportDoubts reports the doubts that have become certain.
func (j *judge) reportDoubts(now time.Duration) {
	later := j.doubts[:0]
	for _, d := range j.doubts {
		switch {
		case now < d.answered+2*time.Second:
			later = append(later, d)
		case d.bound == 0 || d.answered > j.stalls.Extended(d.sent, d.bound, d.answered):
			j.report(oracle.Violation{At: d.answered, Invariant: oracle.I4, Subject: d.subject, Text: d.text})
		}
	}
	j.doubts = later
}
