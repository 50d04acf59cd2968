package hotparam

import (
	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/fleet"
	"github.com/hotparam/hotparam/limiter/redislimiter"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// Stats are the states of the parts, and their counters since Open.
type Stats struct {
	Rules       RulesStats
	Guard       middleware.Stats
	Backend     limiter.FailoverStats // limits with scope: exact
	Collector   collector.Stats
	Sink        any `json:",omitempty"` // a kafkasink.Stats with Kafka, otherwise nil
	Watcher     hotkeys.WatcherStats
	Controls    hotkeys.ControlWatcherStats
	Heartbeat   hotkeys.HeartbeatStats
	Fleet       fleet.Stats                 // limits with scope: fleet
	Members     redislimiter.MembersStats   // limits with scope: share
	Semaphore   redislimiter.SemaphoreStats // concurrency with scope: exact
	OnHot       map[string]OnHotStats       // rules with on_hot, by id
	Invalidator hotkeys.InvalidatorStats    // of answers, by rules with on_hot
}

// RulesStats describe the rules of the file.
type RulesStats struct {
	Version string // version of the rules in force
	// RedactKey identifies the key of secrets.redact without revealing it; empty if there
	// is none. Instances with different keys count redacted values under different keys.
	RedactKey string
	Reloads   uint64 // times that the file was put in force since Open
	Rejected  uint64 // times that it was not, because it was bad or needed a restart
	Problem   string // why the file is not in force: it is bad, or cannot be read; empty if it is
}

// Stats returns a snapshot.
func (h *Hotparam) Stats() Stats {
	s := Stats{
		Rules:       h.rulesStats(),
		Guard:       h.guard.Stats(),
		Backend:     h.guard.BackendStats(),
		Fleet:       h.guard.FleetStats(),
		Watcher:     h.watcher.Stats(),
		Controls:    h.controls.Stats(),
		Heartbeat:   h.heartbeat.Stats(),
		Members:     h.fleet.members.Stats(),
		Semaphore:   h.fleet.semaphore.Stats(),
		OnHot:       h.answers.Stats(),
		Invalidator: h.answers.invalidator.Stats(),
	}
	if h.counts != nil {
		s.Collector = h.counts.Stats()
	}
	if h.transport.Stats != nil {
		s.Sink = h.transport.Stats()
	}
	return s
}

// rulesStats returns the counters and the present problem of the file.
func (h *Hotparam) rulesStats() RulesStats {
	s := h.file.Stats()
	return RulesStats{Version: s.Version, RedactKey: keyID(h.file.Rules()), Reloads: uint64(s.Reloads), Rejected: uint64(s.Rejected), Problem: s.Problem}
}

// keyID returns the id of the key that redacts values.
func keyID(ruleset *rules.Rules) string {
	redaction, err := rules.NewRedaction(ruleset.Redact)
	if err != nil { // impossible, since the guard has made the same redaction
		return ""
	}
	return redaction.KeyID()
}
