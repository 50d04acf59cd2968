package kafkasource

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/wire"
)

// record counts one record of the partition, which arrived at clock.
//
// The time of its counts is the one that its headers name, less the offset of the sender's clock
// from the brokers', but no later than the broker received it. If senders stamp records, counts
// are no later than they arrived, and clocks that are off are only reported. Counts without
// headers have the time at which the broker received them.
func (w *worker) record(r *kgo.Record, logStart int64, clock time.Time) {
	s := &w.source.stats
	appended := r.Timestamp
	if appended.UnixMilli() <= 0 || appended.After(clock) {
		appended = clock // no stamp, or one by a clock that is fast
	}
	if w.begun < 0 {
		w.begun = r.Offset
		if logStart > 0 && r.Offset <= logStart {
			w.in.recordLoss(appended) // older records have been deleted
		}
		w.loseSkipped(appended)
	}
	if r.Offset == 0 {
		w.mark.setKnown(nil) // the first record of the partition
	}
	w.position = r.Offset + 1
	s.Records.Add(1)
	if r.Attrs.IsControl() {
		return
	}
	w.headers = appendHeaders(w.headers[:0], r)
	head, ours, err := wire.ParseRecordHead(w.headers)
	ofInstance := ours && err == nil && string(head.Namespace) == w.source.cfg.Rules.Namespace
	// An unsigned record is another writer's. It advances the partition's time by the broker's
	// stamp, and nothing else in it is believed.
	believed := err != nil || ours && !ofInstance || w.admits(&head, ofInstance, r, appended, clock)
	ofInstance = ofInstance && believed
	heard := clock
	if !w.report.covered {
		heard = appended // its sender may have ended since
	}
	w.detectSilence(appended, ofInstance)
	w.mark.record(appended, heard)
	if w.mark.appended.Sub(w.advanced) >= tick {
		// Panes are closed in the order of time, before later counts move the windows.
		w.advance(appended)
	}
	switch {
	case !believed:
	case err != nil:
		s.BadHeaders.Add(1) // the gap in its sender's sequence shows the loss
	case !ours:
		s.NoHeaders.Add(1)
		w.count(nil, r.Value, appended, false)
	case !ofInstance:
		s.Foreign.Add(1)
	default:
		w.headed(&head, r, appended, clock, heard)
	}
}

// admits reports whether a record is believed. If senders stamp records themselves, its time of
// arrival is that of our clock, once all older records have been read.
func (w *worker) admits(head *wire.RecordHead, ours bool, r *kgo.Record, appended, clock time.Time) bool {
	arrived := appended
	if r.Attrs.TimestampType() != appendTime && w.report.covered {
		arrived = clock
	}
	m := &head.Meta
	if !ours {
		m = nil
	}
	return w.decoder.AdmitsRecord(m, w.headers, w.partition, r.Value, arrived)
}

// headed counts a record with headers.
func (w *worker) headed(head *wire.RecordHead, r *kgo.Record, appended, clock, heard time.Time) {
	if head.Partitions != w.parts {
		// Until all senders know the number, some of a key's counts go to other partitions.
		w.source.stats.Mismatched.Add(1)
		w.in.recordLoss(w.now)
		if head.Partitions > w.parts {
			w.source.askSize()
		}
	}
	latest, stamped := clock, r.Attrs.TimestampType() == appendTime
	if stamped {
		latest = appended
	}
	w.mark.sent(&head.Meta, w.count(&head.Meta, r.Value, latest, stamped), heard)
}

// appendTime is the type of timestamps set by the broker.
const appendTime = 1

// detectSilence detects a time in which no instance was heard. Counts that the instances could not
// send then arrive later than windows wait for, or never. The loss must be recorded before the
// record advances the time, whoever sent it.
func (w *worker) detectSilence(appended time.Time, ofInstance bool) {
	if appended.Sub(w.spoken) > grace && (ofInstance || len(w.mark.senders) > 0) {
		w.in.recordLoss(appended)
	}
	if ofInstance {
		w.spoken = base.Later(w.spoken, appended)
	}
}

// count decodes lines and returns the time of their counts, which is at most now, or just before
// now if a broker has stamped them.
func (w *worker) count(m *wire.Meta, lines []byte, now time.Time, stamped bool) time.Time {
	when, ok := w.decoder.Record(m, lines, now, stamped, w.in)
	if ok {
		w.now = base.Later(w.now, when) // the detector's windows are there now
		w.report.newest = base.Later(w.report.newest, when)
	}
	return when
}

func appendHeaders(dst []wire.Header, r *kgo.Record) []wire.Header {
	for i := range r.Headers {
		dst = append(dst, wire.Header{Key: r.Headers[i].Key, Value: r.Headers[i].Value})
	}
	return dst
}
