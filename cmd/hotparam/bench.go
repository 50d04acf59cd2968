package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hotparam/hotparam/cmd/internal/bench"
)

func newBench(s streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure hotparam on this machine: request cost, ingest, accuracy, time to enforce, limits of a fleet, the whole chain",
		Long: `Measure hotparam on this machine. Each measurement ends within a minute, starts the
servers that it needs, and leaves nothing behind. Compared programs alternate in the
same run, and results are medians. On a busy machine only the ratios are meaningful.`,
		Example: `  hotparam bench request               # what does a request cost?
  hotparam bench ingest --vs minimal   # how many lines does the aggregator take in?
  hotparam bench detect                # does it find what an exact count finds?
  hotparam bench enforce               # how soon is a burst limited? (needs a Redis)
  hotparam bench fleet                 # how do instances hold one limit together? (needs a Redis)
  hotparam bench pipeline              # what does the whole chain cost? (needs a Redis)
  hotparam bench enforce --json | jq .p99_ms`,
		Args: args(),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBenchDetect(s), newBenchEnforce(s), newBenchFleet(s), newBenchIngest(s), newBenchPipeline(s), newBenchRequest(s), newBenchPart(s))
	return cmd
}

// newBenchPart returns the hidden command with which the measurements start processes.
func newBenchPart(s streams) *cobra.Command {
	return &cobra.Command{
		Use:     "part NAME",
		Hidden:  true,
		Short:   "Be a part of a measurement: started by the other commands, configured by JSON on standard input",
		Example: "  hotparam bench part sender",
		Args:    args("NAME"),
		RunE: func(cmd *cobra.Command, names []string) error {
			return bench.RunPart(cmd.Context(), names[0], s.in, s.out)
		},
	}
}

// partCommand returns the command line that starts a part.
func partCommand() ([]string, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("bench: find this program, to start it again: %w", err)
	}
	return []string{program, "bench", "part"}, nil
}

// runBench runs a measurement with a progress bar, and prints the result as one JSON object or as
// text. measure gets the command that starts a part of this program.
func runBench[R any](s streams, unit string, asJSON bool, measure func(command []string, step func(done, total int)) (R, error), text func(R) error) error {
	command, err := partCommand()
	if err != nil {
		return err
	}
	step, end := newBar(s, unit)
	r, err := measure(command, func(done, total int) { step(int64(done), int64(total)) })
	end()
	switch {
	case err != nil:
		return err
	case asJSON:
		return newJSON(s.out).Encode(r)
	}
	return text(r)
}

// maxRounds is the number beyond which more rounds add no information.
const maxRounds = 1000

func checkRounds(n int) error {
	if n < 1 || n > maxRounds {
		return usageError(fmt.Errorf("--rounds %d: must be 1 to %d", n, maxRounds))
	}
	return nil
}

// interruptedError replaces the errors of interrupted parts by a single word.
func interruptedError(err error) error {
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted")
	}
	return err
}

// newBar returns the functions of a progress bar: step sets the number done and the total, which
// is -1 if unknown, and end removes the bar. Without a terminal they do nothing.
func newBar(s streams, what string) (step func(done, total int64), end func()) {
	bar := newProgress(s)
	return func(done, total int64) { bar.set(what, done, total, false) }, bar.done
}

// isSpread reports whether a spread of requests over instances is known.
func isSpread(spread string) bool { return spread == "even" || spread == "zipf" }

func spreadError(spread string) error { return fmt.Errorf("--spread %q: want even or zipf", spread) }

// benchError adds advice to the error of a benchmark. Redis is the URL that was given, or "", and
// brokers are the Kafka brokers.
func benchError(err error, redis string, brokers []string) error {
	switch {
	case errors.Is(err, context.Canceled):
		return interruptedError(err)
	case errors.Is(err, bench.ErrNoRedis):
		return noRedisError(err, redis)
	case errors.Is(err, bench.ErrNoKafka):
		return unreachableError(fmt.Errorf("%w (is Kafka running at %s, and may topics be made there? without --brokers an embedded one is used)", err, strings.Join(brokers, ",")))
	}
	return err
}
