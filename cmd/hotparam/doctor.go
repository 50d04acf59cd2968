package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/cmd/internal/doctor"
	"github.com/hotparam/hotparam/cmd/internal/history"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/hotwords"
	_ "github.com/hotparam/hotparam/transport/kafka" // for files with source: kafka
)

func newDoctor(s streams) *cobra.Command {
	var f redisFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor [--config FILE]",
		Short: "Find problems of a fleet and print a fix for each; exit 1 if there are any",
		Long: `Find problems of a fleet: Redis unreachable or rights missing, no aggregator, instances
whose counts do not arrive, rules or clocks that differ, lost counts, full memory or a
full published set, controls that end soon or are refused, a history that is not written.
Each finding has a fix. The exit code is 1 if there is a problem.

It reads Redis, and writes and deletes a key there, to check the user's rights. Run it
where an instance or an aggregator runs, as its user.`,
		Example: `  hotparam doctor --config hotparam.yaml
  hotparam doctor --namespace shop --redis 10.0.0.5:6379
  hotparam doctor --config hotparam.yaml --json | jq '.[] | select(.status == "problem")'`,
		Args: args(),
		RunE: func(cmd *cobra.Command, _ []string) error { return runDoctor(cmd.Context(), s, &f, asJSON) },
	}
	f.register(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "an array of {check, status, what, mend}; the status is ok, warning, problem or unknown")
	return cmd
}

func runDoctor(ctx context.Context, s streams, f *redisFlags, asJSON bool) error {
	place, client, err := f.connect(s.err)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // the client has only read
	c := doctor.Config{Client: client, Namespace: place.namespace, Where: redacted(place.redis.URL)}
	var found []doctor.Finding
	if file := place.file; file != nil {
		found = append(found, examineFile(f.config, file)...)
		c.Rules, c.Nameless = file.Rules, nameless(file)
		c.LimitsOnly = file.Aggregator.Source == config.SourceNone
	}
	if file := place.file; file != nil && !c.LimitsOnly {
		transport, err := hotparam.OpenTransport(hotparam.TransportConfig{File: file, Instance: "hotparam-doctor", Log: slog.New(slog.DiscardHandler)})
		switch {
		case err != nil:
			found = append(found, doctor.Finding{Check: "counts", Status: doctor.Problem, What: "counts cannot be sent: " + err.Error(), Mend: "correct section statsd or kafka of the file"})
		default:
			defer func() { _ = transport.Sink.Close() }() // the sink has sent nothing
			c.Transport = transport.Check
		}
	}
	if file := place.file; file != nil && file.Aggregator.History.On && !c.LimitsOnly {
		past := place.ofHistory()
		pastClient, err := past.client()
		if err != nil {
			return err
		}
		defer func() { _ = pastClient.Close() }() // every write was confirmed
		store, err := history.NewStore(pastClient, place.namespace)
		if err != nil {
			return configError(err)
		}
		c.History = &doctor.History{Store: store, Client: pastClient, Memory: file.Aggregator.History.Memory, Own: past.redis != place.redis}
	}
	found = append(found, doctor.Examine(ctx, c)...)
	if asJSON {
		err = writeJSON(s.out, found)
	} else {
		err = writeFindings(s.out, found)
	}
	if err != nil {
		return err
	}
	if slices.ContainsFunc(found, func(f doctor.Finding) bool { return f.Status == doctor.Problem }) {
		return &exitError{exitFailure, errReported}
	}
	return nil
}

// examineFile returns the findings about the file, which is valid.
func examineFile(path string, file *config.File) []doctor.Finding {
	found := []doctor.Finding{{
		Check: "file", Status: doctor.OK,
		What: fmt.Sprintf("%s is valid: %s, version %s", path, hotwords.Plural(len(file.Rules.Rules), "rule"), file.Rules.Version),
	}}
	for _, w := range file.Warnings() {
		found = append(found, doctor.Finding{Check: "file", Status: doctor.Warning, What: fmt.Sprintf("line %d: %s", w.Line, w.Message), Mend: w.Hint})
	}
	if _, err := file.Aggregator.Keys(); err != nil {
		found = append(found, doctor.Finding{Check: "file", Status: doctor.Problem, What: err.Error(), Mend: "give this user the key, or run doctor as the user who has it"})
	}
	return found
}

// nameless reports whether counts arrive without the names of instances.
func nameless(file *config.File) bool {
	a := file.Aggregator.WithDefaults()
	return a.Source == config.SourceGraphite || a.Source == config.SourceStatsD && !*file.StatsD.WithDefaults(a).Meta
}

// writeFindings writes findings as text.
func writeFindings(w io.Writer, found []doctor.Finding) error {
	var b strings.Builder
	for _, f := range found {
		fmt.Fprintf(&b, "%-8s %-10s %s\n", f.Status, f.Check, printable(f.What))
		if f.Mend != "" {
			fmt.Fprintf(&b, "%-8s %-10s → %s\n", "", "", printable(f.Mend))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
