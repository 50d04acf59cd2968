package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/hotparam/hotparam/cmd/internal/sdnotify"
	"github.com/hotparam/hotparam/config/rulesfile"
	"github.com/hotparam/hotparam/internal/figure"
)

// companion is a task that runs for as long as a pipeline.
type companion struct {
	run     func(context.Context) error // returns when its context ends
	collect func(figure.Samples)        // sends its metrics; may be nil
}

// accompanied is a pipeline with its rules file, its history and its companions.
type accompanied struct {
	pipeline
	file    *rulesfile.Follower
	history *histories // nil without one
	beside  []companion
}

// accompany adds to a pipeline the following of the rules file, the heartbeats, the baselines and,
// if the file has them, the marks of the history and the webhook.
func accompany(p pipeline, file *rulesfile.Follower, set *settings) (*accompanied, error) {
	report, err := newFleetReport(p, file, set)
	if err != nil {
		return nil, err
	}
	baselines, err := keepBaselines(p, set)
	if err != nil {
		return nil, err
	}
	a := &accompanied{p, file, set.history, []companion{{file.Run, func(s figure.Samples) { figure.Collect(s, rulesfile.Figures, file.Stats()) }}, {run: report.beat.Run}, {report.followFleet, report.collect}, baselines}}
	if set.history != nil {
		marks, err := markEvents(a, report, set)
		if err != nil {
			return nil, err
		}
		a.beside = append(a.beside, marks)
	}
	if set.File.Webhook.On() {
		events, err := postEvents(p, set)
		if err != nil {
			return nil, err
		}
		a.beside = append(a.beside, events)
	}
	return a, nil
}

// Run implements pipeline. The companions end after the pipeline.
func (a *accompanied) Run(ctx context.Context) error {
	beside, stop := context.WithCancel(ctx)
	defer stop()
	errs := make([]error, 1+len(a.beside))
	var running sync.WaitGroup
	for i, c := range a.beside {
		running.Go(func() { errs[1+i] = c.run(beside) })
	}
	errs[0] = a.pipeline.Run(ctx)
	stop()
	running.Wait()
	return errors.Join(errs...)
}

// reloadNow reads the file and notifies systemd, since `systemctl reload` waits for it.
func (a *accompanied) reloadNow(systemd *sdnotify.Notifier) {
	systemd.Reloading()
	_ = a.file.Reload() // it is logged
	words, _ := readyWords(a)
	systemd.Ready(words)
}

func (a *accompanied) ready() (string, error) {
	words, err := a.pipeline.ready()
	stats := a.file.Stats()
	if err != nil {
		return "", fmt.Errorf("%w%s", err, stats.Words())
	}
	return words + stats.Words() + a.history.words(), nil
}

func (a *accompanied) collect(s figure.Samples) {
	a.pipeline.collect(s)
	for _, c := range a.beside {
		if c.collect != nil {
			c.collect(s)
		}
	}
}
