package chaos

import (
	"fmt"
	"net/http"
	"time"

	"github.com/hotparam/hotparam/checks/chaos/oracle"
)

// answered records the answer to a request that has just been answered.
func (j *judge) answered(a *api, life int64, route, key string, sent time.Duration, status int, err error) {
	now := j.now() // read before waiting for the lock
	j.mu.Lock()
	defer j.mu.Unlock()
	j.requests++
	j.checkAnswer(a, route, key, sent, now, status, err)
	admitted, refused := status == http.StatusOK, status == http.StatusTooManyRequests
	if refused {
		j.limited++
	}
	if l := j.limitOf(route, key, a, life); l != nil && admitted {
		l.Admit(sent, now)
	}
	switch route {
	case "search":
		if admitted {
			j.hot[a.index].Passed(sent)
		} else if refused {
			j.hot[a.index].Refused(sent)
		}
	case "solo":
		if admitted || refused {
			j.office[a.index].Answered(sent, admitted)
		}
	}
}

// checkAnswer records a doubt if a request failed or was slow without an excuse.
func (j *judge) checkAnswer(a *api, route, key string, sent, now time.Duration, status int, err error) {
	for _, f := range j.failing[a.index] {
		if f.From <= now && sent-3*j.stalls.Within(oracle.Span{From: sent, To: now}) <= f.To {
			return
		}
	}
	d := doubt{at: now, sent: sent, bound: maxLatency}
	switch {
	case route == "wait":
		d.bound += redisTimeout + maxWait
	case route == "solo" || rolling[route].exact:
		d.bound += redisTimeout
		fallthrough
	default:
		j.slowest = max(j.slowest, now-sent)
	}
	took := (now - sent).Round(time.Millisecond)
	switch {
	case err != nil && took < requestTimeout:
		d.text = fmt.Sprintf("failed after %v: %v", took, err)
		d.bound = 0
	case err == nil && status != http.StatusOK && status != http.StatusTooManyRequests:
		d.text = fmt.Sprintf("status %d", status)
		d.bound = 0
	case now > sent+d.bound:
		d.text = fmt.Sprintf("answered after %v, at most %v: %v", took, d.bound, err)
	default:
		return
	}
	d.subject = fmt.Sprintf("GET /%s?%s at %s", route, key, a.name)
	j.doubts = append(j.doubts, d)
}

// doubt is an answer that may be a violation. It is none if the machine stood still, which is
// known only once the stall has ended.
type doubt struct {
	at, sent, bound time.Duration // bound is the longest time allowed; zero means any time
	subject, text   string
}

// settle reports the doubts that have become certain.
func (j *judge) settle(now time.Duration) {
	later := j.doubts[:0]
	for _, d := range j.doubts {
		switch {
		case now < d.at+2*time.Second:
			later = append(later, d)
		case d.bound == 0 || d.at > j.stalls.Extended(d.sent, d.bound, d.at):
			j.report(oracle.Violation{At: d.at, Invariant: oracle.I4, Subject: d.subject, Text: d.text})
		}
	}
	j.doubts = later
}
