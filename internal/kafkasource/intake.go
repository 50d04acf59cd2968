package kafkasource

import (
	"time"

	"github.com/hotparam/hotparam/aggregator"
)

// intake is a partition's detector, as used by its decoder and its worker. Both may report
// losses; the detector gets the newest.
type intake struct {
	*aggregator.Detector
	decoder time.Time // newest loss that the decoder reported
	worker  time.Time // newest loss that the worker reported
	unread  time.Time // newest time of counts that are still to be read; zero if none are
}

// Lost implements [decode.Handler].
func (i *intake) Lost(when time.Time) {
	i.decoder = when
	i.Detector.Lost(i.newest())
}

// Found implements [decode.Handler].
func (i *intake) Found(newest time.Time) {
	i.decoder = newest
	i.Detector.Found(i.newest())
}

// recordLoss records that some count from when or before will never arrive.
func (i *intake) recordLoss(when time.Time) {
	i.worker = later(i.worker, when)
	i.Detector.Lost(i.newest())
}

// await records that counts from when or before are still to be read.
func (i *intake) await(when time.Time) {
	i.unread = later(i.unread, when)
	i.Detector.Lost(i.newest())
}

// caughtUp records that all counts have been read.
func (i *intake) caughtUp() {
	i.unread = time.Time{}
	i.Detector.Found(i.newest())
}

func (i *intake) newest() time.Time { return later(i.unread, later(i.worker, i.decoder)) }
