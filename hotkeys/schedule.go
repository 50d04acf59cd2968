package hotkeys

import (
	"fmt"
	"log/slog"

	"github.com/robfig/cron/v3"
)

// The publisher's jobs, by their place in Publisher.jobs.
const (
	renewJob = iota
	pruneJob
	trimJob
)

// job is work that comes round. The scheduler only says that it is due: the
// publisher's one goroutine does it, so jobs never overlap with each other or
// with a change, and one that is still due is not queued twice.
type job struct {
	name, spec string
	schedule   cron.Schedule
	due        chan struct{} // of size 1
}

// parse reads the job's spec. The parser panics on some ("TZ=0").
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

// Run says that the job is due.
func (j *job) Run() {
	select {
	case j.due <- struct{}{}:
	default:
	}
}

// startJobs starts the scheduler; the function that it returns ends it and
// waits.
func startJobs(jobs []job, logger *slog.Logger) (stop func()) {
	log := cronLog{logger}
	c := cron.New(cron.WithLogger(log), cron.WithChain(cron.Recover(log)))
	for i := range jobs {
		c.Schedule(jobs[i].schedule, &jobs[i])
	}
	c.Start()
	return func() { <-c.Stop().Done() }
}

// cronLog passes on what the scheduler logs, but for its every step.
type cronLog struct{ *slog.Logger }

func (cronLog) Info(string, ...any) {}

func (l cronLog) Error(err error, msg string, args ...any) {
	l.Logger.Error("scheduler: "+msg, append(args, "err", err)...)
}
