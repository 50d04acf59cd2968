// Command workers runs jobs of several customers: no more at a time than there are
// workers, no customer on more than half of them, and each customer's jobs no faster
// than agreed.
//
//	go run ./examples/workers
package main

import (
	"context"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/semaphore"
	"github.com/hotparam/hotparam/rules"
)

// Job is some work for a customer.
type Job struct {
	Customer string
	Do       func(ctx context.Context) error
}

// Pool is a pool of workers that observe limits.
type Pool struct {
	Workers int
	// PerCustomer is the number of jobs of one customer that may run at a time.
	PerCustomer int64
	// Pace limits how often each customer's jobs begin.
	Pace  *limiter.Limiter
	slots semaphore.Acquirer
}

// NewPool returns a pool in which no customer has more than half of the workers.
func NewPool(workers int, pace *limiter.Limiter) (*Pool, error) {
	return &Pool{Workers: workers, PerCustomer: int64(max(1, workers/2)), Pace: pace, slots: semaphore.New(semaphore.Config{})}, nil
}

// Run does the jobs until there are no more, or the context ends. Then the jobs that have begun
// are completed, and no others begin. It calls failed for each job that failed or could not
// begin, from several workers at once.
func (p *Pool) Run(ctx context.Context, jobs <-chan Job, failed func(Job, error)) {
	var workers sync.WaitGroup
	for range p.Workers {
		workers.Go(func() {
			for job := range jobs {
				if err := p.do(ctx, job); err != nil {
					failed(job, err)
				}
			}
		})
	}
	workers.Wait()
}

func (p *Pool) do(ctx context.Context, job Job) error {
	const patience = time.Minute
	slot, d, err := p.slots.Acquire(ctx, job.Customer, semaphore.Request{
		Permits: p.PerCustomer, Queue: p.Workers, Within: patience,
	})
	switch {
	case err != nil:
		return err
	case !d.Allowed:
		return fmt.Errorf("customer %s: no worker within %v", job.Customer, patience)
	}
	defer slot.Release()
	if err := p.Pace.Wait(ctx, job.Customer); err != nil {
		return err
	}
	return job.Do(ctx)
}

func main() {
	backend, err := limiter.NewMemory(limiter.MemoryConfig{})
	if err != nil {
		log.Fatal(err)
	}
	pace, err := limiter.New(backend, "jobs", rules.Quota{Rate: rules.Rate{N: 4, Per: time.Second}, Burst: 2})
	if err != nil {
		log.Fatal(err)
	}
	pool, err := NewPool(4, pace)
	if err != nil {
		log.Fatal(err)
	}
	jobs := make(chan Job)
	go func() {
		defer close(jobs)
		for i := range 16 {
			customer := []string{"acme", "acme", "acme", "bolt"}[i%4]
			jobs <- Job{customer, func(context.Context) error {
				log.Printf("%s works", customer)
				time.Sleep(300 * time.Millisecond)
				return nil
			}}
		}
	}()
	pool.Run(context.Background(), jobs, func(job Job, err error) { log.Printf("%s: %v", job.Customer, err) })
}
