package service

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/hotparam/hotparam/internal/figure"
)

// Collect adds the metrics of the doors to samples.
func (s *Service) Collect(samples figure.Samples) {
	figure.Collect(samples, DoorFigures, s.Figures())
	figure.Collect(samples, FileFigures, s.config.Changed())
}

// DoorFigures are the metrics of all doors, by name.
var DoorFigures = []figure.Figure[map[string]*DoorCounts]{
	byDoor(prometheus.CounterValue, "guard_checks_total", "Requests that were decided on, by door and decision.", "decision",
		func(f *DoorCounts, emit func(string, int64)) {
			emit("passed", f.Passed)
			emit("refused", f.Refused)
		}).
		Explain("requests, or calls of `rls`, that were decided: `passed` or `refused`. The reason is in " +
			"`hotparam_app_requests_total`"),
	byDoor(prometheus.CounterValue, "guard_faults_total", "Calls that were ignored or changed, by door and reason.", "reason",
		func(f *DoorCounts, emit func(string, int64)) {
			for reason, n := range f.Faults {
				emit(string(reason), n)
			}
		}).
		Explain("calls, or parts of calls, that were ignored or changed; the log has a fix. `incomplete` (no method " +
			"or path, so nothing is limited), `ambiguous` (a header of the scheme is repeated), `unauthorized`, " +
			"`unreadable`, `too_large`, `busy` (too many in flight), `slow` (it exceeded its time limit), " +
			"`unknown_path`, `unknown_message`, `unknown_entry`, `too_many` (descriptors or entries), " +
			"`unsupported`, `no_id` and `no_ticket` (a request with a cost or a permit, whose end cannot be " +
			"reported), `unsendable` (the gateway cannot send the rule's response), `cut` (a response that did " +
			"not fit), `invalid` (the content of a frame), `panic`"),
	byDoor(prometheus.GaugeValue, "guard_connections", "Connections that are open, by door.", "",
		func(f *DoorCounts, emit func(string, int64)) { emit("", f.Connections) }),
	byDoor(prometheus.CounterValue, "guard_closed_connections_total", "Connections that the guard closed before their time, by door and reason.", "reason",
		func(f *DoorCounts, emit func(string, int64)) {
			for reason, n := range f.Closed {
				emit(string(reason), n)
			}
		}).
		Explain("connections that the guard closed early: `full` (all places were busy), `idle` (made room for " +
			"another), `not_allowed` (by `allow`), `tls` (no certificate of `client_ca`, an expired one, or no " +
			"TLS), `slow` (a peer that sends or reads too slowly), `invalid` (another protocol), and for `spoe` " +
			"`too_large`, `fragmented`, `handshake`"),
	byDoor(prometheus.GaugeValue, "guard_tickets", "Requests held until their end is reported, by door.", "",
		func(f *DoorCounts, emit func(string, int64)) { emit("", int64(f.Tickets.Held)) }),
	byDoor(prometheus.CounterValue, "guard_tickets_total", "Held requests that have ended, by door and outcome.", "end",
		func(f *DoorCounts, emit func(string, int64)) {
			t := &f.Tickets
			emit("ended", t.Ended)
			emit("repeated", t.Repeated)
			emit("unknown", t.Unknown)
			emit("expired", t.Expired)
			emit("full", t.Full)
		}).
		Explain("ends of requests with a cost or permits: `ended` (reported and charged), `repeated` (reported " +
			"again), `unknown` (no such request is held). The guard itself ends, without cost: `expired` (no " +
			"report within `guard.ticket_age`), `full` (`guard.max_tickets` were held, so the request was " +
			"refused)"),
}

// FileFigures are the metrics of the fields of section guard that need a restart.
var FileFigures = []figure.Figure[[]string]{
	figure.Flag("guard_restart_needed", "1 while the guard section of the file is not in force.",
		func(fields *[]string) bool { return len(*fields) > 0 }).
		Explain("1 while the `guard` section of the file is not in force: `/-/ready` and the log name the fields, which a restart puts in force"),
}

// byDoor returns a metric with the label door, and with a second label unless label is empty.
func byDoor(kind prometheus.ValueType, name, help, label string, values func(f *DoorCounts, emit func(label string, n int64))) figure.Figure[map[string]*DoorCounts] {
	labels := []string{"door"}
	if label != "" {
		labels = append(labels, label)
	}
	return figure.New(kind, name, help, labels, func(all *map[string]*DoorCounts, emit func(float64, ...string)) {
		for door, f := range *all {
			values(f, func(value string, n int64) {
				labelValues := []string{door}
				if label != "" {
					labelValues = append(labelValues, value)
				}
				emit(float64(n), labelValues...)
			})
		}
	})
}
