//go:build !lean

package main

import (
	"context"
	"errors"

	"github.com/hotparam/hotparam/cmd/internal/demo/screen"
)

// A lean build lacks this file, and leaves runDemo nil.
func init() {
	runDemo = func(ctx context.Context, s streams, o demoOptions) error {
		show := screen.Config{Transport: o.transport, Length: o.length, In: s.in, Out: s.out, Err: s.err}
		switch {
		case o.asJSON:
			return demoJSON(ctx, s, show)
		case o.live:
			return demoLive(ctx, show)
		}
		return screen.Lines(ctx, show)
	}
}

// demoLive shows the live view. If a person asks twice to quit, the program ends at once, without a
// summary or a message and with exit code 1.
func demoLive(ctx context.Context, show screen.Config) error {
	if err := screen.Live(ctx, show); !errors.Is(err, screen.ErrImpatient) {
		return err
	}
	return errReported
}

func demoJSON(ctx context.Context, s streams, show screen.Config) error {
	result, err := screen.Result(ctx, show)
	if result == nil {
		return err
	}
	return errors.Join(err, newJSON(s.out).Encode(result))
}
