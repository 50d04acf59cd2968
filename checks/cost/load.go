package cost

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	// clientTimeout is how long a client waits for an answer.
	clientTimeout = 5 * time.Second
	// maxInFlight is the number of requests that may wait for an answer at a time. Further ones
	// fail at once: their clients find no free port.
	maxInFlight = 4096
)

// request is one request of a scenario.
type request struct {
	due   time.Duration // since the beginning of the run
	path  string
	cause string // the key for which the database reads the whole table; empty for an innocent request
}

// sample is the outcome of a request.
type sample struct {
	status int           // 0 if it has no answer
	took   time.Duration // from when it was due; clientTimeout if it has no answer
}

// sendAll sends the requests when they are due, whether or not earlier ones have been answered, to
// the addresses in turn. It returns a sample for each when all are answered. A request's time
// begins when it is due, so a late sender does not hide a slow answer.
func sendAll(ctx context.Context, begin time.Time, requests []request, addrs []string) []sample {
	transport := &http.Transport{MaxIdleConnsPerHost: maxInFlight, DisableCompression: true}
	defer transport.CloseIdleConnections()
	samples := make([]sample, len(requests))
	places := make(chan struct{}, maxInFlight)
	var running sync.WaitGroup
	defer running.Wait()
	for i, r := range requests {
		samples[i] = sample{took: clientTimeout}
		due := begin.Add(r.due)
		time.Sleep(time.Until(due))
		if ctx.Err() != nil {
			return samples
		}
		select {
		case places <- struct{}{}:
		default:
			continue
		}
		running.Go(func() {
			defer func() { <-places }()
			if status, err := get(ctx, transport, due, "http://"+addrs[i%len(addrs)]+r.path); err == nil {
				samples[i] = sample{status, time.Since(due)}
			}
		})
	}
	return samples
}

// get returns the status of an answer, when its body has been read.
func get(ctx context.Context, transport http.RoundTripper, due time.Time, url string) (status int, err error) {
	ctx, cancel := context.WithDeadline(ctx, due.Add(clientTimeout))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, err
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return 0, err
	}
	return res.StatusCode, nil
}
