package hotkeys

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/redisconfig"
)

// Summary replaces the summary of one part of the aggregator, which is published with the next
// renewal. It does not block. Keys that cannot be published are left out.
func (p *Publisher) Summary(part int, s published.Summary) {
	s.Near = slices.DeleteFunc(slices.Clone(s.Near), func(h published.Hot) bool { return namable(h) != nil })
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.summaries == nil {
		p.summaries = make(map[int]published.Summary)
	}
	p.summaries[part] = s
}

// writeSummary publishes the summaries of all parts. It is for people alone, so a failure is left to
// the next renewal.
func (p *Publisher) writeSummary(ctx context.Context) {
	var sum published.Summary
	p.mu.Lock()
	parts := slices.Sorted(maps.Keys(p.summaries))
	for _, part := range parts {
		sum.Merge(p.summaries[part])
	}
	p.mu.Unlock()
	if len(parts) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	_ = p.client.Set(ctx, summaryKey(p.layout, p.cfg.Owner), published.EncodeSummary(&sum), p.cfg.BeatTTL).Err()
}

// maxSummaries bounds the owners whose summaries are read.
const maxSummaries = 256

// ReadSummary returns the summary of a namespace, of all owners. The deadline is that of ctx.
func ReadSummary(ctx context.Context, client redis.UniversalClient, namespace string) (sum published.Summary, err error) {
	defer wrapError(&err, "read the summary")
	if err := redisconfig.Namespace(namespace); err != nil {
		return sum, err
	}
	layout := published.NewLayout(namespace)
	owners, err := client.HGetAll(ctx, layout.Owners).Result()
	if err != nil {
		return sum, err
	}
	var keys []string
	for owner := range owners {
		if !strings.Contains(owner, ":") {
			keys = append(keys, summaryKey(layout, owner))
		}
	}
	slices.Sort(keys)
	keys = keys[:min(len(keys), maxSummaries)]
	if len(keys) == 0 {
		return sum, nil
	}
	values, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, key := range keys {
			p.Get(ctx, key)
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) && !isWrongType(err) {
		return sum, err
	}
	for _, value := range values {
		text, _ := value.(*redis.StringCmd).Bytes()
		if part, err := published.ParseSummary(text); err == nil {
			sum.Merge(part)
		}
	}
	return sum, nil
}

// summaryKey returns the key of an owner's summary. No owner has a colon in its name.
func summaryKey(l published.Layout, owner string) string { return l.Suspects + ":near:" + owner }
