package hotkeys

import (
	"fmt"
	"log/slog"

	"github.com/robfig/cron/v3"
)

// Indices of Publisher.jobs.
const (
	renewJob = iota
	pruneJob
	trimJob
)

// job is periodic work. The scheduler only signals that it is due; the publisher's goroutine does
// it. So jobs overlap neither with each other nor with a change, and a job that is still due is
// not queued twice.
type job struct {
	name, spec string
	schedule   cron.Schedule
	due        chan struct{} // buffered, of size 1
}

// parse parses the job's spec. The parser panics on some specs, such as "TZ=0".
func (j *job) parse() (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf(`%s %q: want "@every 1s" or five cron fields`, j.name, j.spec)
		}
	}()
	j.schedule, err = cron.ParseStandard(j.spec)
	if err != nil {
		return fmt.Errorf(`%s %q: %w; want "@every 1s" or five cron fields`, j.name, j.spec, err)
	}
	return nil
}

// Run signals that the job is due. It implements [cron.Job].
func (j *job) Run() {
	select {
	case j.due <- struct{}{}:
	default:
	}
}

// startJobs starts the scheduler, and returns a function that stops it and waits until it
// has stopped.
func startJobs(jobs []job, logger *slog.Logger) (stop func()) {
	log := cronLog{logger}
	c := cron.New(cron.WithLogger(log), cron.WithChain(cron.Recover(log)))
	for i := range jobs {
		c.Schedule(jobs[i].schedule, &jobs[i])
	}
	c.Start()
	return func() { <-c.Stop().Done() }
}

// cronLog passes on the scheduler's errors, and drops its log of every step.
type cronLog struct{ *slog.Logger }

func (cronLog) Info(string, ...any) {}

func (l cronLog) Error(err error, msg string, args ...any) {
	l.Logger.Error("scheduler: "+msg, append(args, "err", err)...)
}
