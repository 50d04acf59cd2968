package demo

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/accesslog"
	"github.com/hotparam/hotparam/internal/demo/data"
)

// traffic is the real access log, replayed over HTTP at its own speed.
type traffic struct {
	requests []request
	length   time.Duration // of the log, until it begins again
	client   *http.Client

	start  time.Time    // of the log
	at     atomic.Int64 // log time, Unix nanoseconds
	failed atomic.Int64 // requests that got no answer, or an unknown one
}

type request struct {
	after time.Duration // since the log's start
	url   string
}

// newTraffic reads the log. It has whole seconds; the requests of a second are
// spread over it evenly. A client's requests all go to one instance, as many a
// load balancer does it: so the load on a company's filings is uneven.
func newTraffic(ctx context.Context, urls []string) (*traffic, error) {
	log, err := accesslog.Open([]string{"-"}, accesslog.Options{Stdin: bytes.NewReader(data.EDGAR)})
	if err != nil {
		return nil, err
	}
	t := &traffic{client: &http.Client{
		Timeout:   2 * time.Second,
		Transport: &http.Transport{MaxIdleConnsPerHost: workers, MaxConnsPerHost: workers},
	}}
	for entry, err := range log.Entries(ctx) {
		if err != nil {
			return nil, fmt.Errorf("the access log: %w", err)
		}
		if t.start.IsZero() {
			t.start = entry.Time
		}
		url := urls[crc32.ChecksumIEEE([]byte(entry.Addr))%uint32(len(urls))]
		t.requests = append(t.requests, request{entry.Time.Sub(t.start), url + entry.Target})
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

// workers is how many requests can be on their way at a time.
const workers = 32

// run sends requests until ctx ends and waits for the last answers.
func (t *traffic) run(ctx context.Context) {
	defer t.client.CloseIdleConnections()
	due := make(chan string, workers)
	var senders sync.WaitGroup
	for range workers {
		senders.Go(func() {
			for url := range due {
				t.send(ctx, url)
			}
		})
	}
	defer senders.Wait()
	defer close(due)
	began := time.Now()
	for n := 0; ; n++ {
		r := t.requests[n%len(t.requests)]
		loop := time.Duration(n/len(t.requests)) * t.length
		if wait := time.Until(began.Add(loop + r.after)); wait > 0 {
			select {
			case <-ctx.Done():
				return
			case <-time.After(wait):
			}
		}
		t.at.Store(t.start.Add(r.after).UnixNano())
		select {
		case <-ctx.Done():
			return
		case due <- r.url:
		}
	}
}

func (t *traffic) send(ctx context.Context, url string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.failed.Add(1)
		return
	}
	resp, err := t.client.Do(req)
	if err != nil {
		if ctx.Err() == nil { // else the demo is over
			t.failed.Add(1)
		}
		return
	}
	_, _ = io.Copy(io.Discard, resp.Body) // so that the connection can be used again
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusTooManyRequests {
		t.failed.Add(1)
	}
}

// now is where the log is.
func (t *traffic) now() time.Time { return time.Unix(0, t.at.Load()).UTC() }
