// Package screen shows a running demo to a person.
//
//	screen.go   the configuration, and commands for the user to try
//	live.go     the live view: its loop and its keys
//	view.go     the whole view; table.go its table, crowd.go the flash crowd and its effect
//	lines.go    the output without a terminal, and the summary at the end
//	numbers.go  a rate, and the dropped counts, in words
package screen

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/demo"
)

// Config configures a demo and where it is shown.
type Config struct {
	Transport string        // demo.StatsD or demo.Kafka
	Length    time.Duration // zero means until a person quits or the context ends
	In        io.Reader     // the keys of a live view
	Out       io.Writer
	Err       io.Writer // gets warnings
}

// Result runs the demo and returns its result, which is nil if the demo could not start. It
// writes only to cfg.Err.
func Result(ctx context.Context, cfg Config) (*demo.Result, error) {
	d, err := demo.New(ctx, cfg.Transport, newLog(cfg.Err))
	if err != nil {
		return nil, err
	}
	writeIntro(cfg.Err, d)
	ctx, cancel := runFor(ctx, cfg.Length)
	defer cancel()
	defer startCrowd(d, cfg.Length)()
	err = d.Run(ctx)
	result := d.Result()
	return &result, err
}

// runFor returns a copy of ctx that ends after length. Zero means no end.
func runFor(ctx context.Context, length time.Duration) (context.Context, context.CancelFunc) {
	if length == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, length)
}

// newLog returns a logger for warnings and errors.
func newLog(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// snapshotTimeout is the time that the embedded Redis has to answer.
const snapshotTimeout = 500 * time.Millisecond

func snapshot(ctx context.Context, d *demo.Demo) (demo.Moment, error) {
	ctx, cancel := context.WithTimeout(ctx, snapshotTimeout)
	defer cancel()
	return d.Snapshot(ctx)
}

// tryRedis returns commands that read the hot keys, the longest first. The shorter ones are for
// narrow terminals.
func tryRedis(d *demo.Demo) []string {
	_, port, _ := net.SplitHostPort(d.RedisAddr())
	read := fmt.Sprintf("redis-cli -p %s ZREVRANGE 'hotparam:{%s}:hot' 0 -1", port, demo.Namespace)
	return []string{read + " WITHSCORES", read}
}

// tryCurl returns commands that request a key's text ("GET /path?query"). Curl expands "#[1-9]"
// to nine requests, more than the burst, and does not send the fragment.
func tryCurl(d *demo.Demo, text string) []string {
	url := d.URLs()[0]
	_, target, _ := strings.Cut(text, " ")
	return []string{
		fmt.Sprintf("curl -i '%s%s#[1-9]'", url, target),
		fmt.Sprintf("curl -i '%s%s'", url[len("http://"):], target),
	}
}
