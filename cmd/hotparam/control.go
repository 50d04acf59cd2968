package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/hotparam/hotparam/cmd/internal/listed"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/hotwords"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// operation is one call of `hotparam pin`, `block`, `allow` or `release`.
type operation struct {
	redisFlags
	redisPlace
	action    published.ControlAction // empty for release
	span      time.Duration
	why       string
	yes, json bool
	cache     bool // release invalidates the key's answers instead
}

// controlTexts holds the help of the commands.
var controlTexts = map[published.ControlAction]struct{ short, long string }{
	published.ControlPin: {
		"Apply a rule's limit to a key for a time, hot or not",
		"Apply the rule's limit to KEY as if it were hot, even against an exception in the rules file.",
	},
	published.ControlBlock: {
		"Refuse a key's requests for a time",
		"Refuse each request that has KEY with 403. Refused requests are still counted.",
	},
	published.ControlAllow: {
		"Exempt a key from its rule's limit for a time",
		"Count the requests that have KEY, without limiting them by its rule. Other matching rules\nstill limit them.",
	},
	"": {
		"End a control of a key, and its hold, or drop its cached answers",
		"End a control of KEY by hotparam pin, block or allow. Instances that hold KEY while no\naggregator sends heartbeats (aggregator.hold_when_away) release it.\n\nWith --cache, instances drop the answers of KEY that they keep in memory (on_hot), and\nnothing else changes. KEY needs neither a control nor to be hot. An answer whose handler\nruns now is not kept.",
	},
}

func newControl(s streams, action published.ControlAction) *cobra.Command {
	op := operation{action: action}
	use, texts := string(action)+" KEY --for D", controlTexts[action]
	if action == "" {
		use = "release KEY"
	}
	verb, _, _ := strings.Cut(use, " ")
	span := ""
	if action != "" {
		span = " --for 10m"
	}
	cmd := &cobra.Command{
		Use:   use,
		Short: texts.short,
		Long: texts.long + `

KEY is printed by hotparam list, with or without its rule in front. Without the rule, the key
is searched among the hot keys, then among keys with a control, and then, with --config,
among the keys that rules of the file can make. KEY is a single key, not a pattern.

All instances apply the change within a second, and keep it during a Redis outage. The command needs
a Redis user with the rights of hotparam-operator (docs/REDIS.md).`,
		Example: fmt.Sprintf(`  hotparam %[1]s 'GET /search?q=phone'%[2]s --config hotparam.yaml
  hotparam %[1]s 'search-terms GET /search?q=phone'%[2]s --why 'INC-1234' --namespace shop
  hotparam %[1]s 'GET /search?q=phone'%[2]s --namespace shop --redis redis://10.0.0.5:6379/0 --yes --json
  hotparam list --controls --namespace shop`, verb, span),
		Args: args("KEY..."),
		RunE: func(cmd *cobra.Command, words []string) error {
			var err error
			if op.redisPlace, err = op.place(s.err); err != nil {
				return err
			}
			if action != "" && !cmd.Flags().Changed("for") {
				return usageError(fmt.Errorf("--for is missing: for how long, for example --for 10m, at most %s", durationWords(published.MaxControlTime)))
			}
			return op.run(cmd.Context(), s, strings.Join(words, " "))
		},
	}
	op.redisFlags.register(cmd.Flags())
	if action != "" {
		durationVar(cmd.Flags(), &op.span, "for", 0, "for how `long`, at most "+durationWords(published.MaxControlTime))
	} else {
		cmd.Flags().BoolVar(&op.cache, "cache", false, "drop the key's answers in memory, and change nothing else")
		cmd.Example += "\n  hotparam release 'GET /search?q=phone' --cache --config hotparam.yaml"
	}
	cmd.Flags().StringVar(&op.why, "why", "", "`reason`, which is listed")
	cmd.Flags().BoolVar(&op.yes, "yes", false, "do not ask on a terminal")
	cmd.Flags().BoolVar(&op.json, "json", false, "print a JSON object")
	return cmd
}

// durationWords formats a duration without zero parts: "24h", "10m", "1h30m".
func durationWords(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func (op *operation) validate() error {
	switch {
	case op.action != "" && (op.span < time.Millisecond || op.span > published.MaxControlTime):
		return fmt.Errorf("--for %s: want more than 0, at most %s", durationWords(op.span), durationWords(published.MaxControlTime))
	case op.cache && op.why != "":
		return errors.New("--why is listed with a control, and --cache sets and ends none")
	case len(op.why) > published.MaxControlWhy:
		return fmt.Errorf("--why has %d bytes, at most %d are kept", len(op.why), published.MaxControlWhy)
	}
	return nil
}

func (op *operation) run(ctx context.Context, s streams, words string) error {
	if err := op.validate(); err != nil {
		return usageError(err)
	}
	client, err := op.client()
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	reading, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	hot, err := hotkeys.List(reading, client, op.redisPlace.namespace)
	if err != nil {
		return op.explain(err, operatorUser)
	}
	controls, err := hotkeys.ListControls(reading, client, op.redisPlace.namespace)
	if err != nil {
		return op.explain(err, operatorUser)
	}
	ends, held := op.action == "" && !op.cache, false
	if ends {
		held = hotkeys.AreKeysHeld(reading, client, op.redisPlace.namespace)
	} else if err := op.isObeyed(reading, client); err != nil {
		return err
	}
	var ruleset *rules.Rules
	if op.file != nil {
		ruleset = op.file.Rules
	}
	search := keySearch{words: words, hot: hot, controls: controls, ruleset: ruleset, releases: ends, held: held}
	found, err := search.findFor(op.action)
	if errors.Is(err, hotkeys.ErrNoControl) {
		fmt.Fprint(s.err, otherNamespaces(reading, client, op.redisPlace.namespace))
		return op.explain(fmt.Errorf("release %q in namespace %s: %w", strings.TrimSpace(words), op.redisPlace.namespace, err), operatorUser)
	}
	if err != nil {
		return usageError(err)
	}
	if op.cache && keepsNoAnswers(ruleset, found.key) {
		return usageError(fmt.Errorf("release --cache: rule %q has no on_hot in the rules file, so its keys have no answers in memory", found.key.Rule))
	}
	if !ends && !found.seen {
		fmt.Fprintf(s.err, "note: %s\n", found.unseenNote(op.redisPlace.namespace))
	}
	if !op.yes && !op.confirmed(s, found.key) {
		return errors.New("nothing was done")
	}
	writing, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	if op.cache {
		return op.dropAnswers(writing, s.out, client, found.key)
	}
	c, err := hotkeys.CarryOut(writing, client, op.redisPlace.namespace, hotkeys.ControlOrder{Key: found.key, Action: op.action, For: op.span, Why: op.why, Claimed: claimedUser()})
	if err != nil {
		return op.explain(err, operatorUser)
	}
	return op.report(s.out, &c)
}

// isObeyed returns an error if neither an aggregator nor an instance has reported in the
// namespace. A control would have no effect there, and most likely another namespace was meant.
// An instance suffices, since instances obey without an aggregator as well.
func (op *operation) isObeyed(ctx context.Context, client redis.UniversalClient) error {
	if isPublished(ctx, client, op.redisPlace.namespace) {
		return nil
	}
	if members, err := hotkeys.ListMembers(ctx, client, op.redisPlace.namespace); err != nil || len(members) > 0 {
		return nil // a user without the right to read the members may still act
	}
	return fmt.Errorf("%s: no instance sends heartbeats in namespace %s at %s, so nothing was changed. %s", cmp.Or(op.action, "release"), op.redisPlace.namespace, redacted(op.redisPlace.redis.URL), strings.TrimSpace(otherNamespaces(ctx, client, op.redisPlace.namespace)))
}

// confirmed asks for confirmation on a terminal and reports whether it was given. Without a
// terminal it returns true.
func (op *operation) confirmed(s streams, key rules.Key) bool {
	in, ok := s.in.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return true
	}
	verb, span := string(op.action), " for "+durationWords(op.span)
	switch {
	case op.cache:
		verb, span = "drop the answers of", ""
	case op.action == "":
		verb, span = "release", ""
	}
	fmt.Fprintf(s.err, "%s %s (rule %s)%s, namespace %s at %s? [y/N] ", verb, printable(key.Text), printable(key.Rule), span, op.redisPlace.namespace, redacted(op.redisPlace.redis.URL))
	answer, _ := bufio.NewReader(in).ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

func (op *operation) report(w io.Writer, c *published.Control) error {
	if op.json {
		return newJSON(w).Encode(struct {
			Namespace string `json:"namespace"`
			listed.Control
		}{op.redisPlace.namespace, listed.OfControls([]published.Control{*c})[0]})
	}
	what := fmt.Sprintf("%s (rule %s) in namespace %s", printable(c.Text), printable(c.Rule), op.redisPlace.namespace)
	until := c.Until.Local().Format(time.TimeOnly)
	operator := "Redis user unknown"
	if c.By != "" {
		operator = "Redis user " + printable(c.By)
	}
	operator += "; reported by " + printable(c.Claimed)
	var err error
	switch {
	case c.Action == published.ControlHold:
		_, err = fmt.Fprintf(w, "released %s, if instances hold it. %s\n", what, operator)
	case op.action == "":
		_, err = fmt.Fprintf(w, "released %s. Its %s would have ended at %s. %s\n", what, c.Action, until, operator)
	default:
		_, err = fmt.Fprintf(w, "%s %s until %s. %s\n", hotwords.Controlled(c.Action), what, until, operator)
	}
	return err
}

// claimedUser returns the user of this process. It is only a claim: anyone can run a process under
// any name on their own machine.
func claimedUser() string {
	name := os.Getenv("USER")
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, _ := os.Hostname()
	name = strings.ToValidUTF8(name+"@"+host, "")
	return strings.ToValidUTF8(name[:min(len(name), published.MaxControlBy)], "")
}
