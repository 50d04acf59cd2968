package kafkasource

import (
	"context"
	"sync"
)

// Run takes its share of the partitions and works until ctx ends. Then it works off the fetched
// records and leaves the group, unless it is a static member. It waits for unavailable brokers,
// and replaces a stuck client. It returns early with an error if the brokers refuse it.
func (s *Source) Run(ctx context.Context) error {
	outer := ctx
	ctx, s.fail = context.WithCancelCause(ctx)
	defer s.fail(nil)
	var telling sync.WaitGroup
	telling.Go(func() { s.tellInstances(ctx) })
	last, err := s.runClients(ctx)
	if err == nil && outer.Err() == nil {
		err = context.Cause(ctx) // a worker failed
	}
	s.fail(err)
	telling.Wait()
	s.mu.Lock()
	s.isOver = true
	s.mu.Unlock()
	s.removeAll()
	s.working.Wait()
	if last != nil {
		s.leaveGroup(ctx, last)
	}
	s.awaitAbandoned()
	return err
}

// leaveGroup ends the membership, so that the others get the partitions at once. It takes at most as
// long as a request may.
func (s *Source) leaveGroup(ctx context.Context, client *groupClient) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Connection.Timeout)
	defer cancel()
	// The client waits for requests of its own, however long a broker delays them.
	defer context.AfterFunc(ctx, client.cancel)()
	client.AllowRebalance()
	_ = client.LeaveGroupContext(ctx) // otherwise the session times out
	client.CloseAllowingRebalance()
	// Close ends with a poll of the buffered records, which blocks rebalances as any poll does.
	// The goroutine of Close's own LeaveGroup may start only after that poll. It would then wait
	// forever, and leak together with the client.
	client.AllowRebalance()
	client.cancel()
}
