package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/hotparam/hotparam/internal/demo"
	"github.com/hotparam/hotparam/internal/demo/screen"
)

// unattendedDemo is how long the demo runs without a terminal, where no key can end it.
const unattendedDemo = 20 * time.Second

func newDemo(s streams) *cobra.Command {
	var length time.Duration
	var transport string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "demo [--transport statsd|kafka] [--for 20s] [--json]",
		Short: "See it work: real traffic, nothing to install",
		Long: `Run all of hotparam in this one process: three API instances, the aggregator, an
embedded Redis-compatible server, and the access log of a real web server (the
SEC's EDGAR), replayed over HTTP at its own speed, in a loop. A company's filings
are hot at 10 requests per second over all instances; each instance then serves
5 per second of them. Counts go to the aggregator as StatsD lines over UDP, or with
"--transport kafka" by an embedded Kafka, as they would between machines.

On a terminal it shows what is hot until q or Ctrl-C, and f starts a flash crowd: 500
requests per second more for one company, for 15 seconds. The same requests go to the
same API without limits, and the view compares how those for all other companies fare:
both read from a database that answers 600 requests per second. Elsewhere it prints a
line per event, for 20 seconds, with a crowd in between.`,
		Example: `  hotparam demo                     # watch; it shows what to try meanwhile
  hotparam demo --for 1m            # end after a minute
  hotparam demo --transport kafka   # the same by Kafka, which is embedded, too
  hotparam demo --json | jq .hot    # one object at the end`,
		Args: args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			live := !asJSON && interactive(s)
			switch {
			case transport != demo.StatsD && transport != demo.Kafka:
				return usageError(fmt.Errorf("--transport %q: want statsd or kafka", transport))
			case length < 0:
				return usageError(fmt.Errorf("--for %v: must not be negative", length))
			case !cmd.Flags().Changed("for") && !live:
				length = unattendedDemo
			}
			show := screen.Config{Transport: transport, Length: length, In: s.in, Out: s.out, Err: s.err}
			switch {
			case asJSON:
				return demoJSON(cmd.Context(), s, show)
			case live:
				return demoLive(cmd.Context(), show)
			default:
				return screen.Lines(cmd.Context(), show)
			}
		},
	}
	cmd.Flags().StringVar(&transport, "transport", demo.StatsD, "what counts go over: statsd (UDP) or kafka (embedded)")
	durationVar(cmd.Flags(), &length, "for", 0, "run for this `duration`, such as 30s; 0: until q or Ctrl-C")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object at the end, and nothing else")
	return cmd
}

// interactive reports whether a person looks at the output and can press keys.
func interactive(s streams) bool {
	in, ok := s.in.(io.Writer) // as a terminal is
	return ok && terminal(in) && terminal(s.out)
}

// demoLive shows the live view. A person who asks twice to quit does not wait for the summary.
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
