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

// of returns the script with the commands, one per key and each with an argument or without,
// that read its keys. A key of another type is deleted when the script meets it. The limiters'
// script has none: it heals each key by itself.
func (s *script) of(commands ...string) *script {
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
			cure.prepare(ctx, "eval", healScript.source) // it is rare
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
