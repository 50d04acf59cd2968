package semaphore_test

import (
	"context"
	"fmt"
	"time"

	"github.com/hotparam/hotparam/limiter/semaphore"
)

// Two reports of each customer are made at a time, and one more may wait for a second.
func Example() {
	reports := semaphore.New(semaphore.Config{})
	ask := semaphore.Request{Permits: 2, Queue: 1, Within: time.Second}
	report := func(customer string) error {
		lease, d, err := reports.Acquire(context.Background(), customer, ask)
		if err != nil {
			return err
		}
		if !d.Allowed {
			return fmt.Errorf("%s: busy, try again in %v", customer, d.RetryAfter)
		}
		defer lease.Release() // on a panic as well
		fmt.Println("a report for", customer)
		return nil
	}
	if err := report("anna"); err != nil {
		fmt.Println(err)
	}
	fmt.Println(reports.Stats().Held, "held")
	// Output:
	// a report for anna
	// 0 held
}
