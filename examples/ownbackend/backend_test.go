package main

import (
	"context"
	"net"
	"net/rpc"
	"testing"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/limitertest"
	"github.com/hotparam/hotparam/rules"
)

// connect serves a backend over a pipe.
func connect(t *testing.T, backend limiter.Batcher) *Backend {
	t.Helper()
	server := rpc.NewServer()
	if err := server.Register(NewServer(backend)); err != nil {
		t.Fatal(err)
	}
	ours, theirs := net.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		server.ServeConn(theirs)
	}()
	client := rpc.NewClient(ours)
	t.Cleanup(func() {
		_ = client.Close()
		<-served
	})
	return NewBackend(client)
}

// The backend passes the suite of hotparam's own backends.
func TestBackend(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	limitertest.TestBackend(t, limitertest.Config{
		New: func(t *testing.T, now func() time.Duration) limiter.Backend {
			memory, err := limiter.NewMemory(limiter.MemoryConfig{Clock: now})
			if err != nil {
				t.Fatal(err)
			}
			return connect(t, memory)
		},
		Schedules: 10,
	})
}

// A server that does not answer delays a call no longer than the context allows.
func TestBackendHangs(t *testing.T) {
	ours, theirs := net.Pipe()
	defer func() { _ = theirs.Close() }()
	client := rpc.NewClient(ours)
	defer func() { _ = client.Close() }()
	lim, err := limiter.New(NewBackend(client), "users", rules.Quota{Rate: rules.Rate{N: 3, Per: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	go func() { // reads everything and never answers
		var b [1024]byte
		for {
			if _, err := theirs.Read(b[:]); err != nil {
				return
			}
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := lim.Allow(ctx, "ada"); err == nil {
		t.Error("somebody has decided")
	}
}
