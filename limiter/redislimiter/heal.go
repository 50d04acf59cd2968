package redislimiter

import (
	"context"
	_ "embed"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed lua/heal.lua
var healLua string

var healScript = newScript(healLua)

// withReads sets the commands that read the script's keys, one for each key with at most one
// argument, and returns the script. When the script meets a key of another type, heal uses them to
// find and delete it. The limiters' script has no commands, since it deletes such keys itself.
func (s *script) withReads(commands ...string) *script {
	for _, c := range commands {
		s.reads = append(s.reads, c)
	}
	return s
}

// heal deletes the keys of a foreign type that calls met, and sends these calls once more.
func heal(ctx context.Context, client redis.UniversalClient, calls []*call) {
	var hurt, cures []*call
	for _, c := range calls {
		if err := c.cmd.Err(); c.script.reads != nil && err != nil && strings.Contains(err.Error(), "WRONGTYPE") && ended(ctx) == nil {
			cure := &call{script: healScript, keys: c.keys, args: c.script.reads[:len(c.keys)]}
			cure.prepare(ctx, "eval", healScript.source) // too rare to use EVALSHA
			hurt, cures = append(hurt, c), append(cures, cure)
		}
	}
	send(ctx, client, cures)
	again := hurt[:0]
	for i, cure := range cures {
		if n, err := cure.cmd.Int64(); err == nil && n > 0 {
			hurt[i].healed = n
			hurt[i].prepare(ctx, "evalsha", hurt[i].script.hash)
			again = append(again, hurt[i])
		}
	}
	send(ctx, client, again)
}
