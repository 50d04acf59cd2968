package main

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// progress is a progress bar on the terminal. Without a terminal it shows nothing. Files are read
// as a whole before they are replayed, so there are two bars, one after the other.
type progress struct {
	out    io.Writer // nil disables the bar
	shared bool      // events are printed on the same terminal
	bar    *progressbar.ProgressBar
	phase  string
	replay bool
}

func newProgress(s streams) *progress {
	if !terminal(s.err) {
		return &progress{}
	}
	return &progress{out: s.err, shared: terminal(s.out)}
}

// read shows how many bytes of the log have been read.
func (p *progress) read(done, total int64) {
	if !p.replay {
		p.set("reading", done, total, true)
	}
}

// replayed shows how many requests have been replayed.
func (p *progress) replayed(done, total int64) {
	if done < total { // otherwise the log is being read, and the bar for reading is better
		p.replay = true
		p.set("replaying", done, total, false)
	}
}

func (p *progress) set(phase string, done, total int64, bytes bool) {
	if p.out == nil {
		return
	}
	if p.phase != phase {
		p.done()
		p.phase = phase
		p.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(p.out),
			progressbar.OptionSetDescription(phase),
			progressbar.OptionShowBytes(bytes),
			progressbar.OptionShowCount(),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionSetPredictTime(total > 0),
			progressbar.OptionClearOnFinish(),
		)
	}
	_ = p.bar.Set64(done) // display only: an error does not matter
}

// hide makes room for a line of output on the same terminal.
func (p *progress) hide() {
	if p.bar != nil && p.shared {
		_ = p.bar.Clear()
	}
}

func (p *progress) done() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}

// search shows the progress of a search that replays the log repeatedly.
func (p *progress) search(number int, done, total int64) {
	p.replay = true
	p.set(fmt.Sprintf("replay %d", number), done, total, false)
}
