package follow

import (
	"slices"
	"sync"
	"time"

	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/replay"
	"github.com/hotparam/hotparam/internal/status"
)

// rulesState holds the statistics of the rules. It is locked while rules are replaced.
type rulesState struct {
	sync.Mutex
	stats status.RulesFile
}

// Rules returns the current stats of the rules. It is safe for concurrent use.
func (f *Follower) Rules() status.RulesFile {
	f.inForce.Lock()
	defer f.inForce.Unlock()
	return f.inForce.stats
}

// Reload reads the file again and puts its rules in force. If it cannot use them, it logs why
// and keeps the present rules. Changes of the file are also noticed without a call of Reload. It
// is safe for concurrent use.
func (f *Follower) Reload() {
	data, err := config.Read(f.config.Path)
	if err != nil {
		f.inForce.Lock()
		defer f.inForce.Unlock()
		f.reject(err)
		return
	}
	f.putInForce(data)
}

// putInForce puts the rules of a file in force while requests are counted.
func (f *Follower) putInForce(data []byte) {
	f.inForce.Lock()
	defer f.inForce.Unlock()
	file, err := config.Parse(f.config.Path, data)
	if err == nil {
		err = file.ReadRedactKey()
	}
	if err == nil {
		err = f.requests.guard.Reload(file.Rules)
	}
	if err != nil {
		f.reject(err)
		return
	}
	f.slots.life.Store(int64(lifeOf(file.Rules)))
	for _, value := range replay.Values(file.Rules) {
		if !slices.Contains(f.values, value) {
			f.log.Warn("a rule names a field that is not read from the logs until this process restarts", "name", value)
		}
	}
	s := &f.inForce.stats
	s.Version, s.Rules, s.Loaded, s.Problem = file.Rules.Version, len(file.Rules.Rules), time.Now(), ""
	s.Reloads++
	f.log.Info("rules are in force", "version", file.Rules.Version)
}

// reject records that the file cannot be used. The caller holds the lock.
func (f *Follower) reject(err error) {
	f.inForce.stats.Rejected++
	f.inForce.stats.Problem = err.Error()
	f.log.Error("the rules stay as they are", "err", err)
}
