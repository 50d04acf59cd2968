package demo

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/demo/data"
	"github.com/hotparam/hotparam/internal/accesslog"
	"github.com/hotparam/hotparam/internal/base"
)

// traffic replays the real access log over HTTP at its original speed, with an occasional flash
// crowd. The APIs of all variants get the same requests.
type traffic struct {
	requests []plannedRequest
	length   time.Duration // length of the log, after which it repeats
	senders  [Variants]*requestSender
	crowd    *flashCrowd
	compare  atomic.Bool // whether the variants other than WithLimits get the requests too

	start   time.Time    // time of the log's first request
	logTime atomic.Int64 // log time, Unix nanoseconds
}

type plannedRequest struct {
	after time.Duration // time since the log's start
	// instance is the number of the instance that gets the request.
	instance uint32
	target   string
}

// newTraffic reads the log. It has whole seconds, so the requests of a second are spread evenly
// over it. All requests of a client go to one instance, as with many load balancers, so the load
// on a company's filings is uneven.
func newTraffic(ctx context.Context, crowd *flashCrowd, urls [Variants][]string) (*traffic, error) {
	log, err := accesslog.Open([]string{"-"}, accesslog.Options{Stdin: bytes.NewReader(data.EDGAR)})
	if err != nil {
		return nil, err
	}
	t := &traffic{crowd: crowd}
	for v := range Variants {
		t.senders[v] = newSender(urls[v], workersOf[v], crowd)
	}
	for entry, err := range log.Entries(ctx) {
		if err != nil {
			return nil, fmt.Errorf("the access log: %w", err)
		}
		if t.start.IsZero() {
			t.start = entry.Time
		}
		instance := crc32.ChecksumIEEE([]byte(entry.Addr)) % uint32(len(urls[WithLimits]))
		t.requests = append(t.requests, plannedRequest{entry.Time.Sub(t.start), instance, entry.Target})
	}
	for i := 0; i < len(t.requests); {
		second, j := t.requests[i].after, i
		for j < len(t.requests) && t.requests[j].after == second {
			j++
		}
		for k := i; k < j; k++ {
			t.requests[k].after += time.Second * time.Duration(k-i) / time.Duration(j-i)
		}
		t.length, i = second+time.Second, j
	}
	return t, nil
}

// run sends requests until ctx ends and waits for the last answers.
func (t *traffic) run(ctx context.Context) {
	var senders, crowd sync.WaitGroup
	for _, s := range t.senders {
		s.start(ctx, &senders)
	}
	defer func() {
		crowd.Wait()
		for _, s := range t.senders {
			close(s.due)
		}
		senders.Wait()
		for _, s := range t.senders {
			s.client.CloseIdleConnections()
		}
	}()
	instance := uint32(0)
	crowd.Go(func() {
		t.crowd.run(ctx, func() {
			instance++
			t.send(ctx, plannedRequest{instance: instance, target: crowdTarget}, true)
		})
	})
	began := time.Now()
	for n := 0; ; n++ {
		r := t.requests[n%len(t.requests)]
		loop := time.Duration(n/len(t.requests)) * t.length
		if base.Sleep(ctx, time.Until(began.Add(loop+r.after))) != nil {
			return
		}
		t.logTime.Store(t.start.Add(r.after).UnixNano())
		if !t.send(ctx, r, false) {
			return
		}
	}
}

// send sends a request to the API with limits and, while comparing, to those of the other
// variants. It reports false if ctx has ended.
func (t *traffic) send(ctx context.Context, r plannedRequest, crowd bool) bool {
	d := due{plannedRequest: r, scheduled: time.Now(), crowd: crowd}
	for v, s := range t.senders {
		if Variant(v) != WithLimits && !t.compare.Load() {
			continue
		}
		select {
		case <-ctx.Done():
			return false
		case s.due <- d:
		}
	}
	return true
}

// now returns the current time in the log.
func (t *traffic) now() time.Time { return time.Unix(0, t.logTime.Load()).UTC() }
