// Mutants plants known faults in the product and prints which check finds each:
//
//	go run ./internal/mutants/cmd/mutants [-only PART]
//
// It exits with 1 if one survives, or could not be put to the test.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/hotparam/hotparam/internal/mutants"
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

func run(ctx context.Context, only string) error {
	runner, err := mutants.NewRunner()
	if err != nil {
		return err
	}
	var survived, broken, n int
	began := time.Now()
	fmt.Printf("%-58s  %-34s  %6s  %s\n", "FAULT", "FILE", "TIME", "FOUND BY")
	for _, f := range mutants.Faults() {
		if !strings.Contains(f.Name+" "+f.File, only) {
			continue
		}
		n++
		o, err := runner.Run(ctx, f)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		found := strings.Join(o.FoundBy, " ")
		switch {
		case err != nil:
			broken++
			found = "NOT TESTED: " + err.Error()
		case found == "":
			survived++
			found = "SURVIVES: " + f.Test
		}
		fmt.Printf("%-58s  %-34s  %5.1fs  %s\n", f.Name, f.File, o.Took.Seconds(), found)
	}
	fmt.Printf("\n%d faults in %s: %d found, %d survive, %d not tested\n",
		n, time.Since(began).Round(time.Second), n-survived-broken, survived, broken)
	switch {
	case n == 0:
		return fmt.Errorf("no fault has %q in its name or file", only)
	case survived+broken > 0:
		return errors.New("sharpen the checks of the faults that survive; write those anew that could not be tested")
	}
	return nil
}
