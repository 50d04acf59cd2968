package follow

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/hotparam/hotparam/internal/accesslog"
	"github.com/hotparam/hotparam/internal/loglimit"
)

const (
	// readAtOnce is the number of bytes that are read from one log, and held, before the next
	// log is read.
	readAtOnce = 1 << 20
	// retireAfter is how long a rotated file may go without growing before it is closed. A
	// server keeps writing to it until it reopens its log.
	retireAfter = 5 * time.Second
	// maxFiles bounds the open files of one log: the current one and rotated ones.
	maxFiles = 4
)

// tail follows one log by its path. It polls: file system notifications do not exist on network
// file systems, and a flush each 100 ms needs no more.
type tail struct {
	path    string
	options accesslog.Options
	log     *slog.Logger
	stats   *counters

	files   []*file // oldest first; the last one has, or had, the path
	failing loglimit.Outage
	odd     loglimit.Limit // log lines about bad lines
}

// openLog opens the file, and skips its contents unless all is set. If the file is missing, it is
// awaited.
func (t *tail) openLog(now time.Time, all bool) error {
	f, err := openFile(t.path, now, t.options)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		t.log.Warn("the log is not there; waiting for it", "log", t.path)
		return nil
	case err != nil:
		return err
	case !all:
		if err := f.skipToEnd(); err != nil {
			f.close(func([]byte) {})
			return err
		}
	}
	t.files = append(t.files, f)
	return nil
}

// poll calls each with the requests of new lines, and reports whether there may be more.
func (t *tail) poll(room []byte, now time.Time, each func(*accesslog.Entry)) (more bool) {
	t.openRotated(now)
	t.retire(now, each)
	for _, f := range t.files {
		again, truncated, err := f.read(room, now, t.lines(f, each))
		if truncated {
			t.stats.Truncated.Add(1)
			t.log.Info("the log was truncated; reading from its beginning", "log", t.path)
		}
		t.report(err, now)
		more = more || again
	}
	return more
}

// openRotated opens the file that is at the path now, unless it is already being read.
func (t *tail) openRotated(now time.Time) {
	info, err := os.Stat(t.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return // between the two steps of a rotation, or not created yet
	case err != nil:
		t.report(err, now)
		return
	case len(t.files) > 0 && os.SameFile(info, t.files[len(t.files)-1].info):
		return
	}
	f, err := openFile(t.path, now, t.options)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			t.report(err, now)
		}
		return
	}
	if len(t.files) > 0 {
		t.stats.Rotated.Add(1)
		t.log.Info("the log was rotated; reading the new file", "log", t.path)
		t.files[len(t.files)-1].grew = now // retireAfter starts now
	} else {
		t.log.Info("the log is there", "log", t.path)
	}
	t.files = append(t.files, f)
}

// retire closes rotated files that no longer grow, and the oldest if there are too many.
func (t *tail) retire(now time.Time, each func(*accesslog.Entry)) {
	for len(t.files) > 1 && (now.Sub(t.files[0].grew) >= retireAfter || len(t.files) > maxFiles) {
		t.files[0].close(t.lines(t.files[0], each))
		t.files = append(t.files[:0], t.files[1:]...)
	}
}

// lines returns the function that handles each line of a file.
func (t *tail) lines(f *file, each func(*accesslog.Entry)) func([]byte) {
	return func(line []byte) {
		e, ok, err := f.decoder.Decode(line)
		t.stats.Lines.Add(1)
		switch {
		case err != nil:
			if t.stats.Bad.Add(1); len(line) > accesslog.MaxLine {
				t.stats.TooLong.Add(1)
			}
			if unlogged, may := t.odd.Allow(loglimit.LineRate{Burst: 3, Every: time.Minute}, time.Now()); may {
				t.log.Warn("a line is skipped", "log", t.path, "reason", err, "line", accesslog.Excerpt(line), "unlogged", unlogged)
			}
		case ok:
			each(&e)
		}
	}
}

// report logs that the log cannot be read, and later that it can be read again.
func (t *tail) report(err error, now time.Time) {
	if err == nil {
		if lasted, failed := t.failing.End(now); failed {
			t.log.Info("the log can be read again", "log", t.path, "after", lasted)
		}
		return
	}
	t.stats.Failed.Add(1)
	if t.failing.Begin(time.Minute, now) {
		t.log.Warn("the log cannot be read; trying again", "log", t.path, "err", err)
	}
}

// close closes all files, and handles their incomplete last lines.
func (t *tail) close(each func(*accesslog.Entry)) {
	for _, f := range t.files {
		f.close(t.lines(f, each))
	}
	t.files = nil
}
