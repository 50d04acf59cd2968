package kafkasource

import (
	"time"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/internal/base"
)

// intake is a partition's detector, as used by its decoder and its worker. Both may report
// losses; the detector gets the newest.
type intake struct {
	*aggregator.Detector
	decoder time.Time // newest loss that the decoder reported
	worker  time.Time // newest loss that the worker reported
	unread  time.Time // newest time of counts that are still to be read; zero if none are
}

// RecordLoss implements [decode.Handler].
func (i *intake) RecordLoss(when time.Time) {
	i.decoder = when
	i.Detector.RecordLoss(i.newest())
}

// ReduceLoss implements [decode.Handler].
func (i *intake) ReduceLoss(newest time.Time) {
	i.decoder = newest
	i.Detector.ReduceLoss(i.newest())
}

// recordLoss records that some count from when or before will never arrive.
func (i *intake) recordLoss(when time.Time) {
	i.worker = base.Later(i.worker, when)
	i.Detector.RecordLoss(i.newest())
}

// await records that counts from when or before are still to be read.
func (i *intake) await(when time.Time) {
	i.unread = base.Later(i.unread, when)
	i.Detector.RecordLoss(i.newest())
}

// caughtUp records that all counts have been read.
func (i *intake) caughtUp() {
	i.unread = time.Time{}
	i.Detector.ReduceLoss(i.newest())
}

func (i *intake) newest() time.Time { return base.Later(i.unread, base.Later(i.worker, i.decoder)) }
