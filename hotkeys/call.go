package hotkeys

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/wire"
)

// call runs a script and takes note of why it refused; the answer is nil then.
func (p *Publisher) call(ctx context.Context, name string, script *redis.Script, args ...any) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, p.outage.timeout(p.cfg.Timeout))
	defer cancel()
	head := []any{
		p.cfg.Owner, p.holder, p.epoch, p.version.Run, p.version.N,
		p.layout.Changed, wire.MaxPush,
		p.cfg.EntryTTL.Milliseconds(), p.cfg.BeatTTL.Milliseconds(), p.cfg.Events,
		p.cfg.Lease.Milliseconds(), p.own, p.silence.Milliseconds(),
	}
	run := script.Run
	if !p.known[script] { // its digest alone would likely be one exchange in vain
		run = script.Eval
	}
	all, err := run(ctx, p.client, p.layout.keys(p.cfg.Owner), append(head, args...)...).StringSlice()
	if err == nil {
		p.known[script] = true
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	answer, report, ok := cutReport(all)
	if !ok {
		return nil, fmt.Errorf("%s: unexpected answer %q", name, all)
	}
	p.reported(name, report)
	switch answer[0] {
	case statusOK:
		return answer, p.succeeded(name, answer)
	case statusFenced, statusStandby:
		return nil, p.standBy(answer)
	case statusLost:
		p.reclaim = true
	case statusBack, statusGone:
		p.rewrite = true
	case statusSchema:
		return nil, fmt.Errorf("%s: %s is %q, and this program knows only 1: use the program that wrote it, or another namespace", name, p.layout.Schema, answer[1:])
	default:
		return nil, fmt.Errorf("%s: unexpected answer %q", name, answer)
	}
	return nil, nil
}

// succeeded notes the version that a script answered. A claim changes nothing,
// and what it answers is compared first.
func (p *Publisher) succeeded(name string, answer []string) error {
	if name != "claim" && name != "adopt" && name != "lease" {
		if len(answer) < 2 {
			return fmt.Errorf("%s: unexpected answer %q", name, answer)
		}
		v, err := wire.ParseHotVersion(answer[1])
		if err != nil {
			return fmt.Errorf("%s: %w, got %q", name, err, answer[1])
		}
		p.saw(v)
	}
	if !p.outage.isOn() { // else it is over when all that is due is written
		p.stats.connected.Store(true)
	}
	return nil
}
