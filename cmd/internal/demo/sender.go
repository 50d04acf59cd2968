package demo

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// workersOf has the numbers of requests that can be in flight to an API at a time: more than
// arrive while its database lets one wait. With limits hardly any request waits, and few workers
// keep a slow machine from falling behind.
var workersOf = [Variants]int{WithoutLimits: 512, WithLimits: 32, WithOnHot: 32}

// requestSender sends requests to the instances of one API.
type requestSender struct {
	urls    []string
	workers int
	due     chan due
	client  *http.Client
	crowd   *flashCrowd
	crowds  latencies    // of the crowd's requests
	others  latencies    // of requests for other companies that were not refused
	failed  atomic.Int64 // requests with no answer, or an unexpected one
}

// due is a request and the time at which it is due. Waiting for a worker is part of its latency.
type due struct {
	plannedRequest
	scheduled time.Time
	crowd     bool
}

func newSender(urls []string, workers int, c *flashCrowd) *requestSender {
	return &requestSender{urls: urls, workers: workers, crowd: c, due: make(chan due, workers), client: &http.Client{
		Timeout:   2 * time.Second,
		Transport: &http.Transport{MaxIdleConnsPerHost: workers, MaxConnsPerHost: workers},
	}}
}

func (s *requestSender) start(ctx context.Context, parts *sync.WaitGroup) {
	for range s.workers {
		parts.Go(func() {
			for d := range s.due {
				s.send(ctx, d)
			}
		})
	}
}

func (s *requestSender) send(ctx context.Context, d due) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.urls[d.instance%uint32(len(s.urls))]+d.target, nil)
	if err != nil {
		s.failed.Add(1)
		return
	}
	resp, err := s.client.Do(req)
	if err != nil {
		if ctx.Err() == nil { // otherwise the demo has ended
			s.failed.Add(1)
		}
		return
	}
	_, _ = io.Copy(io.Discard, resp.Body) // so that the connection can be used again
	_ = resp.Body.Close()
	now := time.Now()
	a := answerTime{answered: now, took: now.Sub(d.scheduled)}
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusServiceUnavailable:
		a.failed = true
	case http.StatusTooManyRequests:
		a.refused = true
	default:
		s.failed.Add(1)
		return
	}
	switch measured := s.crowd.isMeasured(d.scheduled); {
	case d.crowd:
		s.crowds.add(a, measured)
	case !a.refused && !strings.Contains(d.target, Param+"="+crowdValue+"&"):
		s.others.add(a, measured)
	}
}
