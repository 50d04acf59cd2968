package claims

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"strings"

	"github.com/hotparam/hotparam/checks/exact"
	"github.com/hotparam/hotparam/internal/accesslog"
	"github.com/hotparam/hotparam/internal/base"
)

// Trace returns a stream of an access log, or of another trace that [exact.Trace] converts.
// Package exact also determines the keys of each request. All requests of a client come to one
// instance. Where no client is known, requests are spread one by one.
func Trace(path, keyBy string, instances int) (func(seed uint64) (EventStream, error), error) {
	t, err := readTrace(path, keyBy)
	if err != nil {
		return nil, err
	}
	return func(seed uint64) (EventStream, error) {
		return &tracePlayback{recorded: t, seed: seed, instances: uint64(instances)}, nil
	}, nil
}

// tracePlayback is one playback of a [recorded] trace.
type tracePlayback struct {
	*recorded
	seed      uint64
	instances uint64
	nextEvent int // index of the next event
}

// recorded is a trace in memory. It is not changed once read.
type recorded struct {
	texts  []string
	ids    map[string]int32
	events []recordedEvent
}

type recordedEvent struct {
	instant int64
	client  uint64
	key     int32
}

func (t *tracePlayback) Dense() int32 { return int32(len(t.texts)) }

func (t *tracePlayback) Span() (from, to int64) {
	return t.events[0].instant, t.events[len(t.events)-1].instant + 1
}

func (t *tracePlayback) Next(_, to int64, dst []KeyEvent) []KeyEvent {
	for ; t.nextEvent < len(t.events) && t.events[t.nextEvent].instant < to; t.nextEvent++ {
		e := &t.events[t.nextEvent]
		dst = append(dst, KeyEvent{Key: e.key, Instance: uint16(base.Mix64(e.client^t.seed) % t.instances), N: 1})
	}
	return dst
}

func (t *tracePlayback) Quiet(int64) int64 {
	if t.nextEvent == len(t.events) {
		return math.MaxInt64
	}
	return t.events[t.nextEvent].instant
}

func (t *recorded) AppendText(dst []byte, key int32) []byte { return append(dst, t.texts[key]...) }

func (t *recorded) ID(text []byte) (int32, bool) {
	key, ok := t.ids[string(text)]
	return key, ok
}

func readTrace(path, keyBy string) (*recorded, error) {
	t := &recorded{ids: make(map[string]int32)}
	known := make(map[string][]int32) // the keys of a method and target
	add := func(instant int64, method, target, client string, n int) {
		request := method + " " + target
		keys, ok := known[request]
		if !ok {
			for _, text := range exact.Keys(keyBy, method, target) {
				keys = append(keys, t.intern(text))
			}
			known[request] = keys
		}
		h := fnv.New64a()
		h.Write([]byte(client))
		from := h.Sum64()
		if client == "" {
			from = uint64(n)
		}
		for _, key := range keys {
			t.events = append(t.events, recordedEvent{instant, from, key})
		}
	}
	err := eachRequest(path, add)
	if err == nil && len(t.events) == 0 {
		err = errors.New("no request has a key")
	}
	if err != nil {
		return nil, fmt.Errorf("%s by %s: %w", path, keyBy, err)
	}
	return t, nil
}

func (t *recorded) intern(text string) int32 {
	key, ok := t.ids[text]
	if !ok {
		key = int32(len(t.texts))
		t.texts = append(t.texts, strings.Clone(text))
		t.ids[t.texts[key]] = key
	}
	return key
}

func eachRequest(path string, add func(instant int64, method, target, client string, n int)) error {
	n := 0
	if exact.Made(path) {
		for r, err := range exact.Trace(path) {
			if err != nil {
				return err
			}
			add(r.At, r.Method, r.Target, "", n)
			n++
		}
		return nil
	}
	log, err := accesslog.Open([]string{path}, accesslog.Options{})
	if err != nil {
		return err
	}
	for e, err := range log.Entries(context.Background()) {
		if err != nil {
			return err
		}
		add(e.Time.UnixNano(), e.Method, e.Target, e.Addr, n)
		n++
	}
	return nil
}
