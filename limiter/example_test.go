package limiter_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// Three logins a minute for each user.
func Example() {
	backend, err := limiter.NewMemory(limiter.MemoryConfig{}) // or redislimiter.New(client, …)
	if err != nil {
		panic(err)
	}
	logins, err := limiter.New(backend, "logins", rules.Quota{
		Algorithm: rules.SlidingLog, Rate: rules.Rate{N: 3, Per: time.Minute}})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	for range 4 {
		d, err := logins.Allow(ctx, "ada")
		if err != nil {
			panic(err)
		}
		if d.Allowed {
			fmt.Println("welcome,", d.Remaining, "left")
		} else {
			fmt.Println("try again in", d.RetryAfter.Round(time.Minute))
		}
	}
	// Output:
	// welcome, 2 left
	// welcome, 1 left
	// welcome, 0 left
	// try again in 1m0s
}

// A caller that can wait half a second gets an error at once if that is too short.
func ExampleLimiter_Wait() {
	backend, err := limiter.NewMemory(limiter.MemoryConfig{})
	if err != nil {
		panic(err)
	}
	mails, err := limiter.New(backend, "mails", limiter.Per(1, time.Hour))
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	for range 2 {
		err := mails.Wait(ctx, "ada")
		var denied *limiter.DeniedError
		switch {
		case err == nil:
			fmt.Println("sent")
		case errors.As(err, &denied):
			fmt.Println("in", denied.RetryAfter.Round(time.Hour))
		}
	}
	// Output:
	// sent
	// in 1h0m0s
}

// A request needs a limit of its user and a limit of all users. It takes from both, or from
// neither.
func ExampleAllowAll() {
	backend, err := limiter.NewMemory(limiter.MemoryConfig{})
	if err != nil {
		panic(err)
	}
	user, err := limiter.New(backend, "user", limiter.Per(1, time.Hour))
	if err != nil {
		panic(err)
	}
	all, err := limiter.New(backend, "all", limiter.Per(100, time.Hour))
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	for range 2 {
		d, err := limiter.AllowAll(ctx,
			limiter.Claim{Limiter: user, Key: "ada", N: 1},
			limiter.Claim{Limiter: all, Key: "*", N: 1})
		if err != nil {
			panic(err)
		}
		left, err := all.Peek(ctx, "*", 0)
		if err != nil {
			panic(err)
		}
		fmt.Println(d.Allowed, "by", d.Rule, "-", left.Remaining, "of all are left")
	}
	// Output:
	// true by user - 99 of all are left
	// false by user - 99 of all are left
}

// While the primary is unavailable, this instance decides by its third of the quota.
func ExampleNewFailover() {
	away := backendFunc(func(context.Context, limiter.Op) (limiter.Result, error) {
		return limiter.Result{}, errors.New("connection refused")
	})
	safe, err := limiter.NewFailover(away, limiter.FailoverConfig{Instances: func() int { return 3 }})
	if err != nil {
		panic(err)
	}
	l, err := limiter.New(safe, "api", limiter.Per(30, time.Hour))
	if err != nil {
		panic(err)
	}
	d, err := l.Allow(context.Background(), "ada")
	if err != nil {
		panic(err)
	}
	fmt.Println(d.Allowed, d.Limit)
	// Output: true 10
}

type backendFunc func(context.Context, limiter.Op) (limiter.Result, error)

func (f backendFunc) Do(ctx context.Context, op limiter.Op) (limiter.Result, error) {
	return f(ctx, op)
}
