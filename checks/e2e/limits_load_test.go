package e2e

import (
	"context"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// asked is one request to a limit, and what came of it. The limit decided at some
// instant between sent and got.
type asked struct {
	url        string
	sent, got  time.Time
	status     int
	retryAfter string
	err        error
}

func (f *fleet) ask(url string) asked {
	a := asked{url: url, sent: time.Now()}
	res, err := f.http.Get(url)
	if err == nil {
		_, err = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		a.status, a.retryAfter = res.StatusCode, res.Header.Get("Retry-After")
	}
	a.got, a.err = time.Now(), err
	return a
}

// askAll asks each instance so many times, all of them at once, and tells how many
// requests each let pass. Of all others only those that were refused are fine.
func (f *fleet) askAll(apis []*api, times int, path string) (passed []int, sum int) {
	f.t.Helper()
	answers := make([][]asked, len(apis))
	var clients sync.WaitGroup
	for i, a := range apis {
		clients.Go(func() {
			for range times {
				answers[i] = append(answers[i], f.ask(a.url+path))
			}
		})
	}
	clients.Wait()
	passed = make([]int, len(apis))
	for i := range answers {
		wellAnswered(f.t, answers[i])
		passed[i] = count(answers[i], http.StatusOK)
		sum += passed[i]
	}
	return passed, sum
}

// hammer has workers ask each URL without a pause, until stop is called, which returns
// all that was asked, in the order in which it was sent.
func (f *fleet) hammer(workers int, urls ...string) (stop func() []asked) {
	ctx, cancel := context.WithCancel(context.Background())
	var (
		running sync.WaitGroup
		mu      sync.Mutex
		all     []asked
	)
	for _, url := range urls {
		for range workers {
			running.Go(func() {
				var mine []asked
				for ctx.Err() == nil {
					mine = append(mine, f.ask(url))
					time.Sleep(time.Millisecond) // leaves the machine to others
				}
				mu.Lock()
				defer mu.Unlock()
				all = append(all, mine...)
			})
		}
	}
	end := func() {
		cancel()
		running.Wait()
	}
	f.t.Cleanup(end)
	return func() []asked {
		end()
		slices.SortFunc(all, func(a, b asked) int { return a.sent.Compare(b.sent) })
		return all
	}
}

// wellAnswered judges answers: all that a limit may say is 200, 429, and 503, the
// latter two with the time after which to come again.
func wellAnswered(t *testing.T, answers []asked) {
	t.Helper()
	for _, a := range answers {
		switch {
		case a.err != nil:
			t.Fatalf("%s: %v after %v", a.url, a.err, a.got.Sub(a.sent))
		case a.status == http.StatusOK:
		case a.status != http.StatusTooManyRequests && a.status != http.StatusServiceUnavailable:
			t.Fatalf("%s: %d", a.url, a.status)
		case a.retryAfter == "":
			t.Fatalf("%s: %d without Retry-After", a.url, a.status)
		}
	}
}

func count(answers []asked, status int) (n int) {
	for _, a := range answers {
		if a.status == status {
			n++
		}
	}
	return n
}

func since(answers []asked, from time.Time) []asked {
	return slices.DeleteFunc(slices.Clone(answers), func(a asked) bool { return a.sent.Before(from) })
}

func only(answers []asked, urls []string) []asked {
	return slices.DeleteFunc(slices.Clone(answers), func(a asked) bool { return !slices.Contains(urls, a.url) })
}

// settled is when all was done that was on its way at an instant.
func settled(answers []asked, at time.Time) time.Time {
	done := at
	for _, a := range answers {
		if a.sent.Before(at) && a.got.After(done) {
			done = a.got
		}
	}
	return done
}
