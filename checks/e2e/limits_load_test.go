package e2e

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// askAll sends so many requests to each instance, all at once, and returns how many each let
// pass. Any answer other than a success or a refusal fails the test.
func (f *fleet) askAll(apis []*api, times int, path string) (passed []int, sum int) {
	f.t.Helper()
	answers := make([][]answer, len(apis))
	passed = make([]int, len(apis))
	var clients sync.WaitGroup
	for i, a := range apis {
		clients.Go(func() {
			for range times {
				answers[i] = append(answers[i], f.ask(a.url+path))
			}
		})
	}
	clients.Wait()
	for i := range answers {
		wellAnswered(f.t, answers[i])
		passed[i] = count(answers[i], http.StatusOK)
		sum += passed[i]
	}
	return passed, sum
}

// hammer has workers request each URL without a pause. stop ends them and returns all answers in
// the order in which the requests were sent.
func (f *fleet) hammer(workers int, urls ...string) (stop func() []answer) {
	var mu sync.Mutex
	var all []answer
	var work []func(context.Context)
	for _, url := range urls {
		for range workers {
			work = append(work, func(ctx context.Context) {
				var mine []answer
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
	end := beside(f.t, work...)
	return func() []answer {
		end()
		slices.SortFunc(all, func(a, b answer) int { return a.sent.Compare(b.sent) })
		return all
	}
}

// wellAnswered checks that answers have the status 200, 429 or 503, the latter two with the time
// after which to retry.
func wellAnswered(t *testing.T, answers []answer) {
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

func count(answers []answer, status int) (n int) {
	for _, a := range answers {
		if a.status == status {
			n++
		}
	}
	return n
}

func since(answers []answer, from time.Time) []answer {
	return slices.DeleteFunc(slices.Clone(answers), func(a answer) bool { return a.sent.Before(from) })
}

func until(answers []answer, to time.Time) []answer {
	return slices.DeleteFunc(slices.Clone(answers), func(a answer) bool { return a.got.After(to) })
}

func only(answers []answer, urls []string) []answer {
	return slices.DeleteFunc(slices.Clone(answers), func(a answer) bool { return !slices.Contains(urls, a.url) })
}
