package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/hotparam/hotparam/internal/sdnotify"
)

// reportService tells systemd that the daemon is ready, then that it is alive, and, once ctx
// ends, that it stops. Ready means that counts are received and that /-/ready answers, not that
// Redis does: a daemon that waits for Redis need not be started again.
func reportService(ctx context.Context, systemd *sdnotify.Notifier, p pipeline, status net.Addr, log *slog.Logger) error {
	systemd.Ready(statusWords(p))
	systemd.Watch(ctx, func(ctx context.Context) (string, error) {
		if err := p.alive(); err != nil {
			return "", err
		}
		return statusWords(p), askHealth(ctx, status)
	}, func(err error) { log.Error("this process is about to be restarted by its watchdog", "err", err) })
	<-ctx.Done()
	systemd.Stopping()
	return nil
}

// statusWords are what `systemctl status` shows: the answer of /-/ready.
func statusWords(p pipeline) string {
	words, err := p.ready()
	if err != nil {
		return "not ready: " + err.Error()
	}
	return words
}

// askHealth asks this daemon's own HTTP server, as any other client does.
func askHealth(ctx context.Context, server net.Addr) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+reachable(server)+healthPath, http.NoBody)
	if err != nil {
		return err
	}
	request.Close = true // a connection that is kept takes a place
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return fmt.Errorf("its own health: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("its own health: %s", response.Status)
	}
	return nil
}

// reachable is the address by which a process reaches its own listener, which may be one on
// all interfaces.
func reachable(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	switch {
	case !ok || !tcp.IP.IsUnspecified():
		return addr.String()
	case tcp.IP.To4() != nil:
		return fmt.Sprintf("127.0.0.1:%d", tcp.Port)
	}
	return fmt.Sprintf("[::1]:%d", tcp.Port)
}

// stuckAfter is how long a detector may go without having worked anything off. It reports each
// second, whether counts arrive or not.
const stuckAfter = 10 * time.Second

// alive implements pipeline. What it asks takes the locks of all stages.
func (p *statsdPipeline) alive() error {
	p.publisher.Stats()
	if reached := p.agg.Stats().Detector.Reached; !reached.IsZero() && time.Since(reached) > stuckAfter {
		return fmt.Errorf("what was received has not been counted for %v", time.Since(reached).Round(time.Second))
	}
	return nil
}

// alive implements pipeline. A source without progress is none of this process's faults: a
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
