package main

import (
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// hangupLog is how often at most it is logged that SIGHUP came.
const hangupLog = 10 * time.Second

// reportHangups keeps SIGHUP from ending the process, as it would by default, until
// stop is called: its sender wants the file read again, which needs a restart as
// yet.
func reportHangups(log *slog.Logger) (stop func()) {
	hangups, ended := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(hangups, syscall.SIGHUP)
	var reporting sync.WaitGroup
	reporting.Go(func() {
		var logged time.Time
		for {
			select {
			case <-ended:
				return
			case <-hangups:
			}
			if now := time.Now(); now.Sub(logged) >= hangupLog {
				logged = now
				log.Warn("SIGHUP: the file is not read again; restart to use a changed one")
			}
		}
	})
	return func() {
		signal.Stop(hangups)
		close(ended)
		reporting.Wait()
	}
}
