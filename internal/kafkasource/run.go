package kafkasource

import (
	"context"
	"sync"
)

// Run takes its share of the partitions and works until ctx ends: then it works
// off what it has fetched and leaves the group, unless it is a static member.
// Brokers that are away are waited for, and a client that is stuck is replaced. It
// ends early with an error if the brokers refuse it.
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
	for _, w := range s.removeAll() {
		w.end(true)
	}
	s.working.Wait()
	if last != nil {
		s.leave(ctx, last)
	}
	s.awaitAbandoned()
	return err
}

// leave ends the membership: the others get the partitions at once. It takes as long
// as a request may, at most.
func (s *Source) leave(ctx context.Context, client *groupClient) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Connection.Timeout)
	defer cancel()
	// The client waits for requests of its own, however long a broker has it wait.
	defer context.AfterFunc(ctx, client.cancel)()
	client.AllowRebalance()
	_ = client.LeaveGroupContext(ctx) // else the session's end does it
	client.CloseAllowingRebalance()
	// Close ends with a poll of what is buffered, which blocks rebalances as any poll.
	// The goroutine of its own LeaveGroup may start only after that poll, and would
	// wait forever: it and the client would leak.
	client.AllowRebalance()
	client.cancel()
}
