package main

import (
	"context"
	"fmt"
	"net/rpc"
	"sync"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// Server keeps limiters for other processes, which ask over net/rpc.
type Server struct {
	backend limiter.Batcher

	mu     sync.Mutex
	quotas map[rules.Quota]*rules.Quota // one pointer for each quota that is asked for
}

// NewServer returns a server of a backend. With a backend in memory, it is a limiter for a few
// processes without Redis.
func NewServer(backend limiter.Batcher) *Server {
	return &Server{backend: backend, quotas: make(map[rules.Quota]*rules.Quota)}
}

// Call is the request of a client, and Answer the server's answer.
type (
	Call   struct{ Ops []limiter.Op }
	Answer struct{ Results []limiter.Result }
)

// Do answers a call. net/rpc requires this signature.
func (s *Server) Do(call Call, answer *Answer) error {
	for i := range call.Ops {
		if err := s.share(&call.Ops[i]); err != nil {
			return err
		}
	}
	answer.Results = make([]limiter.Result, len(call.Ops))
	return s.backend.DoAll(context.Background(), call.Ops, answer.Results)
}

const maxQuotas = 10_000

// share replaces the op's quota by the pointer that the backend knows it by.
func (s *Server) share(op *limiter.Op) error {
	if op.Quota == nil {
		return fmt.Errorf("an op of %q has no quota", op.Name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.quotas[*op.Quota]
	if q == nil {
		if len(s.quotas) == maxQuotas {
			clear(s.quotas)
		}
		q = op.Quota
		s.quotas[*q] = q
	}
	op.Quota = q
	return nil
}

// Backend asks a [Server]. It is a [limiter.Batcher]: one call asks all limits of a request.
type Backend struct{ client *rpc.Client }

// NewBackend returns a backend that uses client. The caller closes the client.
func NewBackend(client *rpc.Client) *Backend { return &Backend{client} }

// Do implements [limiter.Backend].
func (b *Backend) Do(ctx context.Context, op limiter.Op) (limiter.Result, error) {
	var results [1]limiter.Result
	err := b.DoAll(ctx, []limiter.Op{op}, results[:])
	return results[0], err
}

// DoAll implements [limiter.Batcher]. It waits no longer than the context.
func (b *Backend) DoAll(ctx context.Context, ops []limiter.Op, results []limiter.Result) error {
	for i := range ops {
		if ops[i].Name == "" || ops[i].Key == "" {
			return limiter.ErrNoKey // an error of the server arrives as text only
		}
	}
	var answer Answer
	call := b.client.Go("Server.Do", Call{ops}, &answer, make(chan *rpc.Call, 1))
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-call.Done:
	}
	if call.Error != nil {
		return fmt.Errorf("ask the limiter: %w", call.Error)
	}
	if len(answer.Results) != len(ops) {
		return fmt.Errorf("ask the limiter: %d answers to %d ops", len(answer.Results), len(ops))
	}
	copy(results, answer.Results)
	return nil
}
