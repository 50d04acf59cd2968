package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// probe is a command with arguments that affect only the doctor's own key.
type probe struct {
	command string
	args    []any
}

// probes returns a call of each command that members use, on a key of the namespace.
func probes(key, channel string) []probe {
	all := []probe{
		{"ping", nil}, {"time", nil},
		{"set", []any{key, "1", "PX", "1000"}}, {"get", []any{key}}, {"getrange", []any{key, 0, 0}}, {"setrange", []any{key, 0, "1"}},
		{"pexpire", []any{key, 1000}}, {"pttl", []any{key}}, {"del", []any{key}}, {"setnx", []any{key, "1"}}, {"del", []any{key}},
		{"hset", []any{key, "f", "1"}}, {"hget", []any{key, "f"}}, {"hmget", []any{key, "f"}}, {"hincrby", []any{key, "f", 1}}, {"hgetall", []any{key}},
		{"hkeys", []any{key}}, {"hlen", []any{key}}, {"hdel", []any{key, "f"}}, {"del", []any{key}},
		{"zadd", []any{key, 1, "m"}}, {"zscore", []any{key, "m"}}, {"zcard", []any{key}}, {"zrange", []any{key, 0, -1}}, {"zrevrange", []any{key, 0, -1}},
		{"zrangebyscore", []any{key, 0, 1}}, {"zincrby", []any{key, 1, "m"}}, {"zunionstore", []any{key, 1, key}}, {"zrem", []any{key, "m"}},
		{"zremrangebyscore", []any{key, 0, 1}}, {"zremrangebyrank", []any{key, 0, 1}}, {"del", []any{key}},
		{"xadd", []any{key, "MAXLEN", "1", "*", "f", "1"}}, {"xtrim", []any{key, "MAXLEN", "0"}}, {"xrevrange", []any{key, "+", "-", "COUNT", 1}}, {"xrange", []any{key, "-", "+", "COUNT", 1}}, {"del", []any{key}},
		{"evalsha", []any{strings.Repeat("0", 40), 1, key}}, {"eval", []any{"return 1", 1, key}},
		// No client of ours listens on this channel.
		{"publish", []any{channel, ""}},
	}
	return all
}

// rights checks the rights of the Redis user by running each command. An aggregator's user may lack
// the rights to limit and to invalidate, since only instances do.
func (x *examination) rights(ctx context.Context) {
	lacks, full, err := x.probe(ctx)
	if err != nil {
		x.add("rights", Unknown, fmt.Sprintf("the rights of the Redis user cannot be tested: %v", err), "")
		return
	}
	if full != "" {
		x.add("memory", Problem, "Redis refuses to write: "+full, "raise maxmemory, or give hotparam a Redis of its own: it needs some megabytes")
	}
	lackOf := func(commands []string) (missing []string) {
		for _, command := range commands {
			if lacks[command] {
				missing = append(missing, command)
			}
		}
		return missing
	}
	reads, writes := lackOf(published.ReaderCommands), lackOf(published.WriterCommands)
	var onlyWriter int
	for _, command := range published.WriterCommands {
		if !slices.Contains(published.ReaderCommands, command) {
			onlyWriter++
		}
	}
	x.aggregator = len(writes) == 0
	onlyAggregator := len(writes) == 0 && len(reads) > 0 && !x.LimitsOnly
	switch {
	case x.LimitsOnly: // it needs neither set of commands
	case len(reads) == 0 && len(writes) == 0:
		x.add("rights", OK, "the user of Redis may do all that instances and aggregators do", "")
	case onlyAggregator:
		x.add("rights", OK, "the user of Redis may do all that an aggregator does, and not all that an instance does", "")
	case len(reads) == 0 && len(writes)*2 > onlyWriter:
		x.add("rights", OK, "the user of Redis may do all that an instance does, and may not publish, as is right for an instance", "")
	case len(reads) > 0 && (len(reads) <= len(writes) || len(writes)*2 > onlyWriter):
		x.lack("follow the hot keys, as an instance does", reads)
	default:
		x.lack("publish, as an aggregator does", writes)
	}
	if x.Rules == nil || onlyAggregator {
		return
	}
	if x.Rules.ShareLimits() {
		if missing := lackOf(published.LimiterCommands); len(missing) > 0 {
			x.lack("hold limits over all instances, as rules with scope: share, fleet or exact do", missing)
		}
	}
	if slices.ContainsFunc(x.Rules.Rules, func(r rules.Rule) bool { return r.OnHot != nil }) {
		x.invalidations(ctx, lackOf(published.InvalidatorCommands))
	}
}

// invalidations checks the rights to invalidate the answers that other instances keep. The commands
// are not enough: a user may have them for other keys and channels.
func (x *examination) invalidations(ctx context.Context, missing []string) {
	const effect = ", so answers that on_hot keeps at other instances last to their end"
	if len(missing) > 0 {
		x.lack("invalidate answers of other instances, as rules with on_hot do", missing)
		return
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	name := published.NewLayout(x.Namespace).Invalidation
	// Redis checks the rights first, and then refuses the ID, so this adds nothing and creates no key.
	err := x.Client.Do(call, "xadd", name, "0-0", "f", "1").Err()
	if redis.HasErrorPrefix(err, "NOPERM") {
		x.add("rights", Problem, "the user of Redis may not write "+name+effect, "ACL SETUSER "+x.user()+" '~"+name+"'")
	}
	// The right to a channel is the same for SUBSCRIBE and PUBLISH.
	if err := x.subscribe(call, name); redis.HasErrorPrefix(err, "NOPERM") && !isDenied(err, "subscribe") {
		x.add("rights", Problem, "the user of Redis may not use the channel "+name+", so invalidations of answers that on_hot keeps arrive by a poll alone", "ACL SETUSER "+x.user()+" '&"+name+"'")
	}
}

func (x *examination) lack(purpose string, missing []string) {
	slices.Sort(missing)
	rights := "+" + strings.Join(missing, " +")
	x.add("rights", Problem, fmt.Sprintf("the user of Redis may not %s: it lacks %s", purpose, rights), "ACL SETUSER "+x.user()+" "+rights+"; docs/REDIS.md has the whole lists")
}

// user returns the name of the Redis user from the client's options, or "USER" if they have none.
func (x *examination) user() string { return userOf(x.Client) }

func userOf(c redis.UniversalClient) string {
	if client, ok := c.(*redis.Client); ok {
		o := client.Options()
		if o.CredentialsProviderContext != nil {
			if name, _, err := o.CredentialsProviderContext(context.Background()); err == nil && name != "" {
				return name
			}
		}
		if o.Username != "" {
			return o.Username
		}
	}
	return "USER"
}

// probe runs the commands and returns the ones that the user may not run. full is the error of a
// Redis that is out of memory.
func (x *examination) probe(ctx context.Context) (lacks map[string]bool, full string, err error) {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	key := "hotparam:{" + x.Namespace + "}:doctor"
	all := probes(key, key)
	results := make([]*redis.Cmd, len(all))
	_, err = x.Client.Pipelined(call, func(p redis.Pipeliner) error {
		for i, probe := range all {
			results[i] = p.Do(call, append([]any{probe.command}, probe.args...)...)
		}
		return nil
	})
	var answer redis.Error
	if err != nil && !errors.As(err, &answer) {
		return nil, "", err
	}
	lacks = make(map[string]bool)
	for i, result := range results {
		switch err := result.Err(); {
		case err == nil:
		case isDenied(err, all[i].command):
			lacks[all[i].command] = true
		case redis.HasErrorPrefix(err, "OOM"):
			full = err.Error()
		}
	}
	x.probeTransaction(call, key, lacks)
	x.probeSubscription(call, lacks)
	return lacks, full, nil
}

// isDenied reports whether Redis denies the command, and not its key or channel.
func isDenied(err error, command string) bool {
	text := err.Error()
	return strings.Contains(text, "NOPERM") && strings.Contains(text, "run the") && strings.Contains(strings.ToLower(text), "'"+command)
}

// probeTransaction runs MULTI and EXEC separately: go-redis reports only the first error.
func (x *examination) probeTransaction(ctx context.Context, key string, lacks map[string]bool) {
	_, err := x.Client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Get(ctx, key)
		return nil
	})
	for _, command := range []string{"multi", "exec"} {
		if err != nil && isDenied(err, command) {
			lacks[command] = true
		}
	}
}

// probeSubscription subscribes to the channel of changes.
func (x *examination) probeSubscription(ctx context.Context, lacks map[string]bool) {
	channel := published.NewLayout(x.Namespace).Changed
	err := x.subscribe(ctx, channel)
	if err != nil && isDenied(err, "subscribe") {
		lacks["subscribe"] = true
	} else if redis.HasErrorPrefix(err, "NOPERM") {
		x.add("rights", Problem, "the user of Redis may not subscribe to "+channel+", so changes arrive by the poll each second alone", "ACL SETUSER "+x.user()+" '&"+channel+"'")
	}
}

func (x *examination) subscribe(ctx context.Context, channel string) error {
	sub := x.Client.Subscribe(ctx)
	defer sub.Close() // the subscription has only read
	err := sub.Subscribe(ctx, channel)
	if err == nil {
		_, err = sub.Receive(ctx)
	}
	return err
}
