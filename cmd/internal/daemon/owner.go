package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hotparam/hotparam/cmd/internal/history"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/hotwords"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// owner publishes for a source that counts all keys. It is a single owner of the set in Redis.
type owner struct {
	publisher loggedPublisher
	name      string
	histories *histories
	history   *history.Writer // nil without a history
	log       *slog.Logger
}

// newOwner returns an owner that is named after its source and, if it has one, the name of this
// aggregator. It calls inherit with the published keys when it takes over its part of the set.
func newOwner(set *settings, inherit func([]published.Hot)) (owner, error) {
	conf := set.File.Aggregator
	c := hotkeys.PublisherConfig{Namespace: set.File.Rules.Namespace, Owner: conf.Source, Rules: hotRules(set.File.Rules), Inherit: inherit, Outcomes: set.outcomes, Logger: set.Log}
	if conf.Name != "" {
		c.Owner += "-" + conf.Name
	}
	if conf.Lease {
		c.Lease = hotkeys.DefaultLease
	}
	publisher, err := hotkeys.NewPublisher(set.Redis, c)
	if err != nil {
		return owner{}, err
	}
	return owner{
		loggedPublisher{publisher, &changeLog{log: set.Log, outcomes: set.outcomes}}, c.Owner,
		set.history, set.history.writer(c.Owner, publisher.Publishes), set.Log,
	}, nil
}

// run runs a source until ctx ends. It publishes until the source has ended, so that the last
// results of the source are published too.
func (o owner) run(ctx context.Context, source func(context.Context) error) error {
	publishing, published := context.WithCancel(context.WithoutCancel(ctx))
	defer published()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer published()
		return source(ctx)
	})
	group.Go(func() error { return o.publisher.Run(publishing) })
	group.Go(func() error { return o.histories.run(publishing, o.name, o.history) })
	return group.Wait()
}

// reload puts rules in force in the publisher, after the source.
func (o owner) reload(rules *rules.Rules) { o.publisher.Reload(hotRules(rules)) }

func (o owner) publishes() bool { return o.publisher.Publishes() }

// ready returns the publisher's state in words, or an error if hot keys are not published.
func (o owner) ready() (string, error) {
	stats := o.publisher.Stats()
	if err := whyNotPublished(&stats); err != nil {
		return "", err
	}
	if stats.Standby {
		return "standby: another aggregator publishes; this one takes over when it dies", nil
	}
	return withTrouble("ready"+placesWords(&stats), &stats), nil
}

// hotRules returns the ids of the rules that find hot keys. They share the places of the
// published set.
func hotRules(rules *rules.Rules) (ids []string) {
	for i := range rules.Rules {
		if len(rules.Rules[i].Hot) > 0 {
			ids = append(ids, rules.Rules[i].ID)
		}
	}
	return ids
}

// placesWords names the rules with hot keys that are not published. It returns "" if all are
// published.
func placesWords(stats *hotkeys.PublisherStats) string {
	var waiting []string
	for _, rule := range slices.Sorted(maps.Keys(stats.Rules)) {
		if n := stats.Rules[rule].Waiting; n > 0 {
			waiting = append(waiting, fmt.Sprintf("%d of %s", n, rule))
		}
	}
	words := ""
	if len(waiting) > 0 {
		words = "; the published set is full, hot keys wait for a place: " + strings.Join(waiting, ", ")
	}
	if n := stats.Unpublishable; n > 0 {
		words += fmt.Sprintf("; %s cannot be published, because no instance could read them", hotwords.Plural(n, "hot key"))
	}
	return words
}

// lateWords names the instance whose counts arrive latest, or returns "" if none are late.
func lateWords(stats *decode.Stats) string {
	late := &stats.Late
	if late.N == 0 {
		return ""
	}
	return fmt.Sprintf("; counts of %s come late, those of %s by %v: are they delayed on the network, or is the clock there slow?",
		hotwords.Plural(int(late.N), "instance"), late.Latest, late.Age.Round(100*time.Millisecond))
}

// clockWords names the instance with the largest clock offset, or returns "" if all are right.
func clockWords(stats *decode.Stats) string {
	off := &stats.Off
	if off.N == 0 {
		return ""
	}
	placed := "the times of its counts are corrected"
	if !off.Worst.Corrected {
		placed = "the times of its counts are not corrected, because the topic has no LogAppendTime"
	}
	return fmt.Sprintf("; the clock of %s is off, that of %s is %s: run chrony or another NTP client there; %s",
		hotwords.Plural(int(off.N), "instance"), off.Worst.Name, off.Worst.Words(), placed)
}

// whyNotPublished returns the reason why hot keys are not published, or nil if they are.
func whyNotPublished(stats *hotkeys.PublisherStats) error {
	switch {
	case stats.FencedBy != "":
		return fmt.Errorf("%w: fenced by %s; this one takes over when that one ends or falls silent", errFenced, stats.FencedBy)
	case stats.Connected:
		return nil
	case stats.Trouble != "":
		return fmt.Errorf("%w: %s", errNoRedis, stats.Trouble)
	}
	return errNoRedis
}

// withTrouble appends to words the failure that stats report although hot keys are published.
func withTrouble(words string, stats *hotkeys.PublisherStats) string {
	if stats.Trouble != "" {
		words += "; but " + stats.Trouble
	}
	return words
}
