package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
)

// unattendedDemo is the length of the demo without a terminal, where no key press can end it.
const unattendedDemo = 20 * time.Second

// demoTransports are the values of --transport.
var demoTransports = []string{"statsd", "kafka"}

// demoOptions are the flags of demo.
type demoOptions struct {
	transport    string
	length       time.Duration
	live, asJSON bool
}

// runDemo runs the demo. It is nil in a lean build, which contains no embedded servers.
var runDemo func(context.Context, streams, demoOptions) error

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

On a terminal it shows the hot keys until q or Ctrl-C. f starts a flash crowd: 500 more
requests per second for one company, for 15 seconds. The same requests go to the same API
without limits, and to one with on_hot, which answers identical requests of a hot company
from memory. The view compares the three, for the crowd and for all others. Each reads from
a database that serves 600 requests per second. Without a terminal it prints a line per
event, for 20 seconds, with one flash crowd.`,
		Example: `  hotparam demo                     # watch; it suggests keys to press
  hotparam demo --for 1m            # end after a minute
  hotparam demo --transport kafka   # the same over an embedded Kafka
  hotparam demo --json | jq .hot    # one object at the end`,
		Args: args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			live := !asJSON && interactive(s)
			switch {
			case !slices.Contains(demoTransports, transport):
				return usageError(fmt.Errorf("--transport %q: want statsd or kafka", transport))
			case length < 0:
				return usageError(fmt.Errorf("--for %v: must not be negative", length))
			case !cmd.Flags().Changed("for") && !live:
				length = unattendedDemo
			}
			if runDemo == nil {
				return errors.New("this build is for deployment and contains no servers: go run github.com/hotparam/hotparam/cmd/hotparam@latest demo")
			}
			return runDemo(cmd.Context(), s, demoOptions{transport, length, live, asJSON})
		},
	}
	cmd.Flags().StringVar(&transport, "transport", demoTransports[0], "transport of counts: statsd (UDP) or kafka (embedded)")
	durationVar(cmd.Flags(), &length, "for", 0, "run for this `duration`, such as 30s; 0 means until q or Ctrl-C")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object at the end, and nothing else")
	return cmd
}

// interactive reports whether a person sees the output and can press keys.
func interactive(s streams) bool {
	in, ok := s.in.(io.Writer) // true for an *os.File, such as a terminal
	return ok && terminal(in) && terminal(s.out)
}
