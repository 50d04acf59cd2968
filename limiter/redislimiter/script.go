package redislimiter

import (
	"cmp"
	"context"
	"regexp"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// script is the source of a script and its hash in Redis; both are strings.
type script struct {
	source, hash any
	reads        []any // see withReads
}

func newScript(parts ...string) *script {
	source := inlined(strings.Join(parts, "\n"))
	return &script{source: source, hash: redis.NewScript(source).Hash()}
}

// constant matches a line of a script that names a number.
var constant = regexp.MustCompile(`(?m)^ *local ([A-Z_]+) = ([\d.]+)( --.*)?\n`)

// inlined replaces the names of numbers by the numbers. In Lua a named number is a variable. Each
// function that uses it captures it when the function is created, which happens in each call. A
// name has one number in all parts of a script, and no other use.
func inlined(source string) string {
	values := make(map[string]string)
	for _, m := range constant.FindAllStringSubmatch(source, -1) {
		values[m[1]] = m[2]
	}
	return word.ReplaceAllStringFunc(constant.ReplaceAllString(source, ""), func(name string) string {
		return cmp.Or(values[name], name)
	})
}

var word = regexp.MustCompile(`[A-Za-z_]+`)

// call is one run of a script, on keys of one slot.
type call struct {
	script *script
	keys   []string
	args   []any
	cmd    once  // outcome
	healed int64 // number of deleted keys of a foreign type
}

// once is a command that no client repeats. A command whose reply was lost may have been
// executed, and would be executed twice; an error serves the caller better.
type once struct{ *redis.Cmd }

// NoRetry prevents go-redis from repeating the command.
func (once) NoRetry() bool { return true }

// Clone implements the interface that go-redis requires of a command.
func (c once) Clone() redis.Cmder { return once{c.Cmd.Clone().(*redis.Cmd)} }

// run runs all calls in one round trip to each server and returns the first error; each call's
// error is in its cmd. If a server does not know a script, because it is new, was flushed or has
// been failed over to, the script is sent in a second round trip, if there is time.
func run(ctx context.Context, client redis.UniversalClient, calls ...*call) error {
	for _, c := range calls {
		c.prepare(ctx, "evalsha", c.script.hash)
	}
	send(ctx, client, calls)
	var unknown []*call
	for _, c := range calls {
		if redis.HasErrorPrefix(c.cmd.Err(), "NOSCRIPT") && ended(ctx) == nil {
			c.prepare(ctx, "eval", c.script.source)
			unknown = append(unknown, c)
		}
	}
	send(ctx, client, unknown)
	heal(ctx, client, calls)
	for _, c := range calls {
		if err := c.cmd.Err(); err != nil {
			return err
		}
	}
	return nil
}

func (c *call) prepare(ctx context.Context, command string, name any) {
	args := make([]any, 0, 3+len(c.keys)+len(c.args))
	args = append(args, command, name, len(c.keys))
	for _, key := range c.keys {
		args = append(args, key)
	}
	c.cmd = once{redis.NewCmd(ctx, append(args, c.args...)...)}
}

// send sends the prepared commands; each has its own error. A cluster gets a pipeline per master.
// In a common pipeline go-redis retries the commands that a dead master did not take. When the
// deadline ends that, the replies of the other masters are lost as well.
func send(ctx context.Context, client redis.UniversalClient, calls []*call) {
	if _, ok := client.(*redis.ClusterClient); !ok || len(calls) < 2 {
		sendTogether(ctx, client, calls)
		return
	}
	masters := make(map[string][]*call)
	for _, c := range calls {
		addr := server(ctx, client, c.keys[0])
		masters[addr] = append(masters[addr], c)
	}
	var others sync.WaitGroup
	first := true
	var ours []*call
	for _, some := range masters {
		if first {
			first, ours = false, some
			continue
		}
		others.Go(func() { sendTogether(ctx, client, some) })
	}
	sendTogether(ctx, client, ours)
	others.Wait()
}

// sendTogether sends calls in one pipeline.
func sendTogether(ctx context.Context, client redis.UniversalClient, calls []*call) {
	switch len(calls) {
	case 0:
	case 1:
		_ = client.Process(ctx, calls[0].cmd) // the command has the error
	default:
		pipe := client.Pipeline()
		for _, c := range calls {
			_ = pipe.Process(ctx, c.cmd)
		}
		_, _ = pipe.Exec(ctx) // each command has its own error
	}
}
