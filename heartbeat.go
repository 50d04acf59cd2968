package hotparam

import (
	"fmt"
	"maps"
	"runtime/debug"
	"time"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/published"
)

// newHeartbeat returns the heartbeat that shows this instance to the others.
func (h *Hotparam) newHeartbeat(namespace string, o *options) (*hotkeys.Heartbeat, error) {
	self := published.Member{Name: o.name, Role: published.RoleInstance, Program: programVersion(), Started: time.Now()}
	return hotkeys.NewHeartbeat(h.client, hotkeys.HeartbeatConfig{Namespace: namespace, Logger: o.log, Member: func() published.Member {
		m := self
		file := h.file.Stats()
		m.RulesVersion, m.Problem = file.Version, file.Problem
		if n := h.fleet.members.Stats().Assumed; n > 0 && m.Problem == "" {
			m.Problem = fmt.Sprintf("it does not know the number of instances that share limits, and assumes %d: it cannot write to hotparam:{%s}:members in Redis", n, namespace)
		}
		for _, n := range h.dropped() {
			m.Dropped += n
		}
		s := h.watcher.Stats()
		m.Held, m.HeldSince = int64(s.Held), s.HeldSince
		m.Displaced = h.guard.Stats().Displaced
		m.Admitted, m.MoreAdmitted = h.guard.Admitted(published.MaxAdmitted)
		return m
	}})
}

// dropped returns the sums of the counts that were not sent, by reason.
func (h *Hotparam) dropped() map[string]int64 {
	if h.counts == nil {
		return nil
	}
	d := h.counts.Stats().Dropped
	byReason := map[string]int64{"table_full": d.TableFull}
	if h.transport.Dropped != nil {
		maps.Copy(byReason, h.transport.Dropped())
	} else {
		byReason["too_long"], byReason["send_error"] = d.TooLong, d.SendError
	}
	return byReason
}

// programVersion returns the version of the program that this package is part of, or "" if it
// was built without one.
func programVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return ""
}
