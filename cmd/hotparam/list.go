package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/spf13/cobra"
)

func newList(s streams) *cobra.Command {
	var redisURL, namespace string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the keys that are hot in Redis now",
		Example: `  hotparam list --namespace shop
  hotparam list --redis redis://10.0.0.5:6379/0 --json | jq '.[0].key'`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			url, space := config.Aggregator{}.WithDefaults().Redis, config.DefaultNamespace
			override(&url, redisURL, "HOTPARAM_REDIS")
			override(&space, namespace, "HOTPARAM_NAMESPACE")
			return list(cmd.Context(), s, url, space, asJSON)
		},
	}
	// The variables are no defaults of the flags, or help would show a password.
	cmd.Flags().StringVar(&redisURL, "redis", "", "Redis `URL` (default "+config.Aggregator{}.WithDefaults().Redis+")")
	cmd.Flags().StringVar(&namespace, "namespace", "", "`name` of the fleet, as in the rules file (default "+config.DefaultNamespace+")")
	cmd.Flags().BoolVar(&asJSON, "json", false, "a JSON array")
	return cmd
}

const listTimeout = 3 * time.Second

func list(ctx context.Context, s streams, redisURL, namespace string, asJSON bool) error {
	if !hotparam.ValidNamespace(namespace) {
		return usageError(fmt.Errorf("--namespace %q: want one or more of A-Z a-z 0-9 _ -", namespace))
	}
	client, err := hotkeys.NewClient(redisURL)
	if err != nil {
		return usageError(err)
	}
	defer func() { _ = client.Close() }() // nothing was written
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	hot, err := hotkeys.List(ctx, client, namespace)
	if err != nil {
		return unreachableError(fmt.Errorf("%w (is Redis running at %s? set --redis or HOTPARAM_REDIS)", err, redacted(redisURL)))
	}
	if asJSON {
		return listJSON(s.out, hot)
	}
	if len(hot) == 0 {
		fmt.Fprintf(s.err, "nothing is hot in namespace %q at %s\n", namespace, redacted(redisURL))
		return nil
	}
	return listTable(s.out, hot)
}

// listed is a hot key as `list --json` prints it.
type listed struct {
	Key   string        `json:"key"`
	Rule  string        `json:"rule"`
	Rate  float64       `json:"rate"`
	Low   int64         `json:"low"`
	High  *int64        `json:"high"` // null when unknown
	Limit string        `json:"limit,omitempty"`
	Burst int64         `json:"burst,omitempty"`
	Mode  hotparam.Mode `json:"mode"`
	Since time.Time     `json:"since"`
	Until time.Time     `json:"until"`
	Owner string        `json:"owner"`
}

func listJSON(w io.Writer, hot []hotparam.Hot) error {
	keys := make([]listed, 0, len(hot))
	for _, h := range hot {
		l := listed{
			Key: h.Text, Rule: h.Rule, Rate: h.Rate, Low: h.Low, Limit: h.Limit.String(), Burst: h.Burst,
			Mode: h.Mode, Since: h.Since.UTC(), Until: h.Until.UTC(), Owner: h.Owner,
		}
		if h.High != hotparam.Unknown {
			l.High = &h.High
		}
		keys = append(keys, l)
	}
	enc := newJSON(w)
	enc.SetIndent("", "  ")
	return enc.Encode(keys)
}

func listTable(w io.Writer, hot []hotparam.Hot) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "RATE\tLIMIT\tMODE\tSINCE\tRULE\tKEY")
	for _, h := range hot {
		limit := h.Limit.String()
		if limit == "" {
			limit = "-"
		}
		fmt.Fprintf(t, "%.1f/s\t%s\t%s\t%s\t%s\t%s\n", h.Rate, limit, h.Mode, h.Since.Local().Format(time.TimeOnly), h.Rule, h.Text)
	}
	return t.Flush()
}
