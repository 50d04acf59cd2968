// Mutants plants known faults in the product and prints which check finds each.
//
//	go run ./checks/mutants/cmd/mutants [-only PART]
//
// It exits with 1 if a fault survives or could not be tested.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"time"

	"github.com/hotparam/hotparam/checks/mutants"
)

func main() {
	only := flag.String("only", "", "only faults with this in their `name` or file")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *only)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// tested is the outcome of a fault, or the reason why it was not tested.
type tested struct {
	mutants.Outcome
	err error
}

func run(ctx context.Context, only string) error {
	runner, err := mutants.NewRunner()
	if err != nil {
		return err
	}
	var faults []mutants.Fault
	for _, f := range mutants.Faults() {
		if strings.Contains(f.Name+" "+f.File, only) {
			faults = append(faults, f)
		}
	}
	if len(faults) == 0 {
		return fmt.Errorf("no fault has %q in its name or file", only)
	}
	began := time.Now()
	results := test(ctx, runner, faults)
	survived, broken := 0, 0
	fmt.Printf("%-60s  %-34s  %6s  %s\n", "FAULT", "FILE", "TIME", "FOUND BY")
	for _, f := range faults {
		var t tested
		select {
		case <-ctx.Done():
			return ctx.Err()
		case t = <-results[f.Name]:
		}
		found := strings.Join(t.FoundBy, " ")
		switch {
		case t.err != nil:
			broken++
			found = "NOT TESTED: " + t.err.Error()
		case found == "":
			survived++
			found = "SURVIVES: " + f.Test
		}
		fmt.Printf("%-60s  %-34s  %5.1fs  %s\n", f.Name, f.File, t.Took.Seconds(), found)
	}
	fmt.Printf("\n%d faults in %s: %d found, %d survive, %d not tested\n",
		len(faults), time.Since(began).Round(time.Second), len(faults)-survived-broken, survived, broken)
	if survived+broken > 0 {
		return errors.New("sharpen the checks of the faults that survive; write those anew that could not be tested")
	}
	return nil
}

// test tests faults, as many at a time as there are processors, since linkers take most of the
// time and use one each.
func test(ctx context.Context, runner *mutants.Runner, faults []mutants.Fault) map[string]chan tested {
	results, todo := make(map[string]chan tested), make(chan mutants.Fault, len(faults))
	for _, f := range faults {
		results[f.Name] = make(chan tested, 1)
		todo <- f
	}
	close(todo)
	for range runtime.NumCPU() {
		go func() { // ends with the last fault or with the context
			for f := range todo {
				o, err := runner.Run(ctx, f)
				results[f.Name] <- tested{o, err}
			}
		}()
	}
	return results
}
