package permits_test

import (
	"context"
	"fmt"
	"time"

	"github.com/hotparam/hotparam/limiter/permits"
	"github.com/hotparam/hotparam/rules"
)

// Two permits an hour, which all clients share.
func Example() {
	ctx := context.Background()
	p := permits.New()
	set, err := p.TrySetRate(ctx, permits.Rate{Rate: rules.Rate{N: 2, Per: time.Hour}})
	if err != nil {
		panic(err)
	}
	fmt.Println("set:", set)
	for range 3 {
		took, err := p.TryAcquire(ctx, 1)
		if err != nil {
			panic(err)
		}
		fmt.Println("took:", took)
	}
	// Output:
	// set: true
	// took: true
	// took: true
	// took: false
}
