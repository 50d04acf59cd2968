// Package load sends HTTP requests when they are due, whether or not earlier ones have been
// answered. A request's time begins when it is due, so it includes a late sender, and the wait for a
// connection behind slow answers.
package load

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"time"
)

// Request is one request.
type Request struct {
	Due               time.Duration // since the beginning
	Method, URL, Body string        // a body is JSON
}

// Sample is the outcome of a request.
type Sample struct {
	Status int           // 0 if it has no answer
	Took   time.Duration // from when it was due to the whole answer; the timeout if it has none
	Late   time.Duration // from when it was due until it was sent
}

// maxInFlight is the number of requests that may wait for an answer at a time. Further ones fail at
// once: their clients find no free port.
const maxInFlight = 4096

// Client sends requests over connections that stay open.
type Client struct {
	transport *http.Transport
	timeout   time.Duration
}

// NewClient returns a client. The timeout is the longest time from when a request is due to its
// answer. The client opens at most this number of connections to an address, or any number if it is 0.
// The caller must close it.
func NewClient(timeout time.Duration, connections int) *Client {
	return &Client{&http.Transport{MaxConnsPerHost: connections, MaxIdleConnsPerHost: maxInFlight, DisableCompression: true}, timeout}
}

// Close closes the connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Send sends the requests, which are in the order in which they are due. It returns a sample for each
// when all have been answered. If ctx ends, it sends no further ones.
func (c *Client) Send(ctx context.Context, begin time.Time, requests []Request) []Sample {
	samples := make([]Sample, len(requests))
	for i := range samples {
		samples[i].Took = c.timeout
	}
	var answers sync.WaitGroup
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		runtime.LockOSThread() // the thread, which sleepUntil changes, ends with the goroutine
		places := make(chan struct{}, maxInFlight)
		for i := range requests {
			due := begin.Add(requests[i].Due)
			sleepUntil(due)
			if ctx.Err() != nil {
				return
			}
			samples[i].Late = time.Since(due)
			select {
			case places <- struct{}{}:
			default:
				continue
			}
			answers.Go(func() {
				defer func() { <-places }()
				if status, err := c.send(ctx, due, &requests[i]); err == nil {
					samples[i].Status, samples[i].Took = status, time.Since(due)
				}
			})
		}
	}()
	<-sent
	answers.Wait()
	return samples
}

// send returns the status of an answer, once its body has been read.
func (c *Client) send(ctx context.Context, due time.Time, r *Request) (status int, err error) {
	ctx, cancel := context.WithDeadline(ctx, due.Add(c.timeout))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, strings.NewReader(r.Body))
	if err != nil {
		return 0, err
	}
	if r.Body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := c.transport.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, err
}
