package gateways

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"
)

// answerPatience is how long answers are awaited after the last request was sent.
const answerPatience = 5 * time.Second

// load sends requests at a fixed rate over persistent connections, whether or not earlier requests
// have been answered. A request's time starts when it is due: time spent waiting for a connection,
// because earlier answers are slow, counts as its own.
type load struct {
	addr     string
	rate     int      // requests per second
	requests [][]byte // sent in rotation
	next     int      // index of the next request

	// A connection is either in idle or has a request, and then its reader puts it back.
	idle    chan *connection
	all     []*connection // including broken ones
	readers sync.WaitGroup

	done func()    // called when a request has been answered or has failed
	end  time.Time // time at which the run stops waiting for answers
}

// loadSample is the measurement of some requests.
type loadSample struct {
	took     []time.Duration // times from the due time to the whole answer
	late     []time.Duration // delays of sending
	statuses map[int]int
	failed   int // requests without an answer
}

// add adds the sample of one connection.
func (s *loadSample) add(other *loadSample) {
	s.took = append(s.took, other.took...)
	s.failed += other.failed
	for status, count := range other.statuses {
		s.statuses[status] += count
	}
}

// connection sends one request at a time.
type connection struct {
	conn net.Conn

	mu      sync.Mutex
	pending bool      // a request is in flight
	due     time.Time // time at which the request was due
	err     error     // if set, the connection is no longer used
	seen    loadSample
}

// openLoad opens the connections. The caller must close the load.
func openLoad(ctx context.Context, addr string, rate, connections int, requests [][]byte) (*load, error) {
	l := &load{addr: addr, rate: rate, requests: requests, idle: make(chan *connection, connections)}
	for range connections {
		if err := l.dial(ctx); err != nil {
			l.closeConnections()
			return nil, err
		}
	}
	return l, nil
}

func (l *load) dial(ctx context.Context) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", l.addr)
	if err != nil {
		return err
	}
	c := &connection{conn: conn}
	c.reset(l.end)
	l.all = append(l.all, c)
	l.idle <- c
	l.readers.Go(func() { l.read(c) })
	return nil
}

func (c *connection) reset(end time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = loadSample{statuses: make(map[int]int)}
	_ = c.conn.SetDeadline(end) // on a closed connection this fails, and so does its reader
}

// closeConnections closes all connections and waits for their readers.
func (l *load) closeConnections() {
	for _, c := range l.all {
		c.conn.Close()
	}
	l.readers.Wait()
}

// run sends n requests, waits for their answers, and returns the sample. It is not safe for
// concurrent use.
func (l *load) run(ctx context.Context, n int) (loadSample, error) {
	var waiting sync.WaitGroup
	waiting.Add(n)
	l.done = waiting.Done
	l.end = time.Now().Add(l.dueAfter(n) + answerPatience)
	for _, c := range l.all {
		c.reset(l.end)
	}
	result := loadSample{statuses: make(map[int]int)}
	sent := make(chan error)
	go func() {
		runtime.LockOSThread() // sleepPrecisely changes the thread, which ends with the goroutine
		var err error
		result.late, err = l.sendAll(ctx, n)
		sent <- err
	}()
	err := <-sent
	waiting.Wait()
	for _, c := range l.all {
		c.mu.Lock()
		result.add(&c.seen)
		c.mu.Unlock()
	}
	slices.Sort(result.took)
	slices.Sort(result.late)
	return result, err
}

// dueAfter returns when request i is due, relative to the first.
func (l *load) dueAfter(i int) time.Duration {
	return time.Duration(i) * time.Second / time.Duration(l.rate)
}

// sendAll sends n requests, each when it is due, and returns how late each was. It stops at the
// first error.
func (l *load) sendAll(ctx context.Context, n int) (late []time.Duration, err error) {
	err = sleepPrecisely()
	begin := time.Now()
	for i := range n {
		due := begin.Add(l.dueAfter(i))
		for wait := time.Until(due); err == nil && wait > 0; wait = time.Until(due) {
			sleep(wait)
		}
		if err == nil {
			err = ctx.Err()
		}
		var c *connection
		if err == nil {
			c, err = l.takeIdle(ctx)
		}
		if err != nil {
			l.done()
			continue
		}
		late = append(late, time.Since(due))
		l.sendRequest(c, due, l.requests[l.next%len(l.requests)])
		l.next++
	}
	return late, err
}

// takeIdle takes an idle connection. It replaces broken ones.
func (l *load) takeIdle(ctx context.Context) (*connection, error) {
	timeout := time.NewTimer(answerPatience)
	defer timeout.Stop()
	for {
		select {
		case c := <-l.idle:
			c.mu.Lock()
			broken := c.err
			c.mu.Unlock()
			if broken == nil {
				return c, nil
			}
			if err := l.dial(ctx); err != nil {
				return nil, errors.Join(broken, err)
			}
		case <-timeout.C:
			return nil, fmt.Errorf("%s answers none of %d requests within %v", l.addr, cap(l.idle), answerPatience)
		}
	}
}

// sendRequest sends a request over an idle connection.
func (l *load) sendRequest(c *connection, due time.Time, request []byte) {
	c.mu.Lock()
	gone := c.err != nil // it broke while it was idle; its reader has ended
	if gone {
		c.seen.failed++
	} else {
		c.due, c.pending = due, true
	}
	c.mu.Unlock()
	if gone {
		l.idle <- c
		l.done()
		return
	}
	if _, err := c.conn.Write(request); err != nil {
		c.conn.Close() // which ends its reader
	}
}

// read reads the answers on a connection until it breaks or is closed.
func (l *load) read(c *connection) {
	r := bufio.NewReader(c.conn)
	for err := error(nil); err == nil; {
		var status int
		status, err = readAnswer(r)
		now := time.Now()
		c.mu.Lock()
		asked := c.pending
		c.pending = false
		switch {
		case err == nil && !asked:
			err = errors.New("an answer without a request")
		case err == nil:
			c.seen.took = append(c.seen.took, now.Sub(c.due))
			c.seen.statuses[status]++
		case asked:
			c.seen.failed++
		}
		c.err = err
		c.mu.Unlock()
		if err != nil {
			c.conn.Close()
		}
		if asked { // otherwise it is already idle
			done := l.done
			l.idle <- c
			done()
		}
	}
}

// readAnswer reads an answer with its body and returns its status.
func readAnswer(r *bufio.Reader) (int, error) {
	answer, err := http.ReadResponse(r, nil)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, errors.Join(err, answer.Body.Close())
}
