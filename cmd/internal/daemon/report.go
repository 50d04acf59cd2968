package daemon

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/config/rulesfile"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/admitted"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/figure"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// fleetReport reports the state of this aggregator to others by heartbeats, and reads theirs.
type fleetReport struct {
	beat      *hotkeys.Heartbeat
	client    redis.UniversalClient
	namespace string
	rules     func() *rules.Rules // the rules in force
	outcomes  *admitted.Totals
	marks     *marker // nil without a history

	fleet base.Guarded[fleetFigures]
}

// fleetFigures are counts of the fleet's members and of the operators' controls.
type fleetFigures struct {
	Roles    map[published.Role]int
	Others   int // members with other rules
	Versions int // number of versions of the rules
	Controls map[published.ControlAction]int
	Admitted map[string]admittedFigures // by rule
}

// admittedFigures compare the admissions of a rule's hot keys by all instances with its limits.
type admittedFigures struct {
	PerSecond, Allowed float64
	Requests, Refused  float64 // per second
	Bounded            bool    // whether burst + rate × time bounds what the rule's limits admit
	OfBound            float64 // the highest part of that bound that a key has reached
}

func newFleetReport(p pipeline, file *rulesfile.Follower, set *settings) (*fleetReport, error) {
	r := &fleetReport{client: set.Redis, namespace: set.File.Rules.Namespace, rules: file.Rules, outcomes: set.outcomes}
	self := published.Member{Name: cmp.Or(set.File.Aggregator.Name, collector.DefaultInstance()), Role: published.RoleAggregator, Program: set.Build.Version, Started: time.Now(), MemoryMax: set.File.Aggregator.Memory}
	var err error
	r.beat, err = hotkeys.NewHeartbeat(set.Redis, hotkeys.HeartbeatConfig{Namespace: r.namespace, Logger: set.Log, Member: func() published.Member {
		m, rules := self, file.Stats()
		m.RulesVersion, m.Problem = rules.Version, rules.Problem
		p.reportTo(&m)
		return m
	}})
	if err != nil {
		return nil, err
	}
	file.OnRead(func(*config.File) { r.beat.Now() }) // others see the version at once, not with the next heartbeat
	return r, nil
}

// lookAtFleet is the interval at which an aggregator reads the heartbeats and controls.
const lookAtFleet = time.Second

// followFleet reads the heartbeats and controls until ctx ends.
func (r *fleetReport) followFleet(ctx context.Context) error {
	look := func() {
		read := r.readFleet(ctx)
		r.fleet.Change(func(f *fleetFigures) { *f = read })
		if r.marks != nil {
			r.marks.lookAtSelf()
		}
	}
	look()
	for range base.Ticks(ctx, lookAtFleet) {
		look()
	}
	return nil
}

// readFleet returns the figures of the fleet. A map that cannot be read is nil.
func (r *fleetReport) readFleet(ctx context.Context) fleetFigures {
	ctx, cancel := context.WithTimeout(ctx, lookAtFleet)
	defer cancel()
	f := fleetFigures{Versions: len(r.beat.Stats().Versions)}
	if members, err := hotkeys.ListFormerMembers(ctx, r.client, r.namespace); err == nil {
		f.Roles = make(map[published.Role]int)
		hot, err := hotkeys.List(ctx, r.client, r.namespace)
		var grown []admitted.Growth
		if err == nil {
			grown = r.outcomes.Update(hot, members, time.Now())
		}
		members = slices.DeleteFunc(members, func(m published.Member) bool { return m.Left })
		if err == nil {
			f.Admitted = r.admitted(hot, members)
		}
		if r.marks != nil {
			r.marks.lookAtPrograms(members)
			r.marks.addRefused(grown)
		}
		for i := range members {
			f.Roles[members[i].Role]++
			if members[i].RulesVersion != r.rules().Version {
				f.Others++
			}
		}
	}
	if controls, err := hotkeys.ListControls(ctx, r.client, r.namespace); err == nil {
		f.Controls = make(map[published.ControlAction]int)
		for i := range controls {
			f.Controls[controls[i].Action]++
		}
	}
	return f
}

// admitted returns the figures of each rule.
func (r *fleetReport) admitted(hot []published.Hot, members []published.Member) map[string]admittedFigures {
	fleet, byRule := admitted.New(members, nil), make(map[string]admittedFigures)
	ruleset := r.rules()
	for i := range ruleset.Rules {
		if rule := &ruleset.Rules[i]; len(rule.Hot) > 0 && rule.Limit != nil {
			byRule[rule.ID] = admittedFigures{Bounded: isBounded(rule)}
		}
	}
	for i := range hot {
		f, known := byRule[hot[i].Rule]
		if !known {
			continue
		}
		g := fleet.Gauge(&hot[i])
		f.Requests += g.Rates.Requests()
		f.Refused += g.Rates.Refused
		if g.Known() && !hot[i].Spared {
			f.PerSecond += g.PerSecond
			f.Allowed += g.Allowed()
			f.OfBound = max(f.OfBound, g.OfBound)
		}
		byRule[hot[i].Rule] = f
	}
	return byRule
}

// isBounded reports whether burst + rate × time bounds what the limits of a rule admit. It does not
// bound windows and logs, requests that are admitted now for a later time, and costs, which are
// known late.
func isBounded(rule *rules.Rule) bool {
	plain := func(l *rules.Limit) bool {
		return l == nil || l.Algorithm.Bucket() && l.Mode != rules.ModeWait
	}
	return rule.Count == rules.Requests && plain(rule.Limit) &&
		!slices.ContainsFunc(rule.Except, func(x rules.Exception) bool { return !plain(x.Limit) })
}

func (r *fleetReport) collect(s figure.Samples) {
	figure.Collect(s, fleetMetrics, r.fleet.Load())
}

var fleetMetrics = []figure.Figure[fleetFigures]{
	figure.GaugesBy("members", "Instances and aggregators with heartbeats, by role.", "role",
		func(f *fleetFigures, emit func(string, float64)) {
			if f.Roles == nil {
				return
			}
			for _, role := range []published.Role{published.RoleInstance, published.RoleAggregator} {
				emit(string(role), float64(f.Roles[role]))
			}
		}).
		Explain("instances and aggregators with heartbeats, including this one, by `role`; missing while Redis is " +
			"unavailable. Members without the right to write heartbeats are not counted"),
	figure.Gauge("members_other_rules", "Instances and aggregators whose rules are not those of this aggregator.",
		func(f *fleetFigures) float64 { return float64(f.Others) }).
		Explain("instances and aggregators whose rules are of another version than this aggregator's: `hotparam list --instances` marks them"),
	figure.Gauge("rules_versions", "Versions of the rules that instances and aggregators have now; 0 if it is not known.",
		func(f *fleetFigures) float64 { return float64(f.Versions) }).
		Explain("versions of the rules among instances and aggregators: more than 1 while they differ, 0 while Redis " +
			"is unavailable or the rights for heartbeats are missing"),
	figure.GaugesBy("controls", "Keys that operators pin, block or allow, by action.", "action",
		func(f *fleetFigures, emit func(string, float64)) {
			if f.Controls == nil {
				return
			}
			for _, action := range []published.ControlAction{published.ControlBlock, published.ControlAllow, published.ControlPin} {
				emit(string(action), float64(f.Controls[action]))
			}
		}).
		Explain("keys that operators `pin`, `block` or `allow` now; missing while Redis is unavailable"),
	figure.GaugesBy("admitted_per_second", "Rate at which all instances together admit the rule's hot keys.", "rule",
		func(f *fleetFigures, emit func(string, float64)) {
			for rule, a := range f.Admitted {
				emit(rule, a.PerSecond)
			}
		}).
		Explain("rate at which all instances together admit the rule's hot keys, over the last ten seconds, in requests, " +
			"bytes, milliseconds or units per second. [Instances report it](docs/WATCHING.md#admitted-beside-the-limit)"),
	figure.GaugesBy("allowed_per_second", "Rate that the limits of the rule's hot keys allow all instances together.", "rule",
		func(f *fleetFigures, emit func(string, float64)) {
			for rule, a := range f.Admitted {
				emit(rule, a.Allowed)
			}
		}).
		Explain("rate that the limits of these keys allow, without bursts. With `scope: instance` it is the limit times " +
			"the number of instances"),
	figure.GaugesBy("hot_requests_per_second", "Requests of the rule's hot keys on all instances.", "rule",
		func(f *fleetFigures, emit func(string, float64)) {
			for rule, a := range f.Admitted {
				emit(rule, a.Requests)
			}
		}).
		Explain("requests of the rule's hot keys on all instances, over the last ten seconds: passed, refused or answered by `on_hot`"),
	figure.GaugesBy("hot_refused_per_second", "Refused requests of the rule's hot keys on all instances.", "rule",
		func(f *fleetFigures, emit func(string, float64)) {
			for rule, a := range f.Admitted {
				emit(rule, a.Refused)
			}
		}).
		Explain("requests that the limits of these keys refused. In shadow mode, those that they would have refused"),
	figure.GaugesBy("limit_bound_ratio", "Admissions of a hot key by all instances in the last ten seconds, divided by burst + rate x time; the highest of the rule's keys.", "rule",
		func(f *fleetFigures, emit func(string, float64)) {
			for rule, a := range f.Admitted {
				if a.Bounded {
					emit(rule, a.OfBound)
				}
			}
		}).
		Explain("admissions of a hot key by all instances in the last ten seconds, divided by burst + rate × time, the " +
			"most that the limit allows; the highest of the rule's keys. Above 1 [the limit does not " +
			"hold](docs/RUNBOOK.md#limit-exceeded). It exists for rules whose limits count requests by a bucket, without `wait`"),
}

func lostSum(d *decode.Stats) int64 { return max(0, d.LostPackets-d.Recovered) }

func refusedSum(d *decode.Stats) (n int64) {
	for why := range decode.PacketRefusal(decode.Refusals) {
		n += d.Refused[why]
	}
	return n
}

func reportDetector(m *published.Member, d *aggregator.DetectorStats) {
	m.MemoryUsed, m.Floor = d.Memory, d.Floor
	m.Dropped += d.Late + d.NoRoom
}
