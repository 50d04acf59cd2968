package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/sdnotify"
	"github.com/hotparam/hotparam/cmd/internal/status"
)

// reportService notifies systemd that the daemon is ready, then that it is alive, and, once ctx
// ends, that it stops. Ready means that counts are received and that /-/ready answers. It does
// not depend on Redis: restarting a daemon that waits for Redis would not help.
func reportService(ctx context.Context, systemd *sdnotify.Notifier, p pipeline, self net.Addr, log *slog.Logger) error {
	words, _ := readyWords(p)
	systemd.Ready(words)
	systemd.Watch(ctx, func(ctx context.Context) (string, error) {
		if err := p.alive(); err != nil {
			return "", err
		}
		words, _ := readyWords(p)
		return words, status.AskHealth(ctx, self)
	}, func(err error) { log.Error("this process is about to be restarted by its watchdog", "err", err) })
	<-ctx.Done()
	systemd.Stopping()
	return nil
}

// readyWords returns the answer of /-/ready, which `systemctl status` shows too.
func readyWords(p pipeline) (words string, ready bool) {
	words, err := p.ready()
	if err != nil {
		return "not ready: " + err.Error(), false
	}
	return words, true
}

// alive implements pipeline. Stats takes the locks of all stages, so it blocks if one is stuck.
func (p *statsdPipeline) alive() error {
	p.publisher.Stats()
	if reached := p.agg.Stats().Detector.Reached; !reached.IsZero() && time.Since(reached) > status.StuckAfter {
		return fmt.Errorf("received counts have not been processed for %v", time.Since(reached).Round(time.Second))
	}
	return nil
}

// alive implements pipeline. A source without progress is no reason to restart this process: a
// client that is stuck is replaced.
func (p *kafkaPipeline) alive() error {
	p.source.Stats()
	p.publishers.stats()
	return nil
}

// alive implements pipeline.
func (p *graphitePipeline) alive() error {
	p.source.Stats()
	p.publisher.Stats()
	return nil
}
