package decode

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/hotparam/hotparam/internal/loglimit"
	"github.com/hotparam/hotparam/internal/published"
)

// ClockLog logs instances whose clocks are off. It names each once, and again if the offset
// changes much or returns after the clock was right. It is used by one goroutine.
type ClockLog struct {
	log   *slog.Logger
	named map[string]time.Duration // offset of each instance when it was named
	lines loglimit.Limit
}

// clockLines bounds the lines of a [ClockLog]. An instance that is not named because no line was
// left is named when there is one.
var clockLines = loglimit.LineRate{Burst: 10, Every: time.Second}

const (
	maxNamed    = 10_000 // instances that a ClockLog remembers
	namedAtOnce = 5      // instances that one line names
)

// NewClockLog returns a ClockLog that writes to log. A nil log disables it.
func NewClockLog(log *slog.Logger) *ClockLog {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &ClockLog{log: log, named: make(map[string]time.Duration)}
}

// Log logs the changes, given the live instances and the clocks among them that are off. It
// should be called about once a second.
func (l *ClockLog) Log(now time.Time, live []published.Instance, off []SenderClock) {
	isOff := make(map[string]bool, len(off))
	var news []SenderClock
	for _, c := range off {
		isOff[c.Name] = true
		if was, isNamed := l.named[c.Name]; !isNamed || (c.Behind-was).Abs() > max(time.Second, was.Abs()/4) {
			news = append(news, c)
		}
	}
	for _, i := range live {
		if _, was := l.named[i.Name]; was && !isOff[i.Name] {
			delete(l.named, i.Name)
			l.log.Info("the clock of an instance is right again", "instance", i.Name)
		}
	}
	if mostAreOff := len(off)*2 > len(live) && len(live) > 2; mostAreOff && len(news) > 1 && l.allows(now) {
		l.log.Warn("the clocks of most instances differ from the clock that places their counts: is that clock wrong?",
			"instances", clockNames(news), "off", len(off), "live", len(live), "hint", "run chrony or another NTP client here, or on the brokers; then on the instances")
		for _, c := range news {
			l.markNamed(c)
		}
		return
	}
	for _, c := range news {
		if !l.allows(now) {
			return
		}
		l.log.Warn("the clock of an instance is wrong", "instance", c.Name, "by", c.Words(), "corrected", c.Corrected,
			"hint", "run chrony or another NTP client there; if the clock is right, packets of the instance are delayed by that time")
		l.markNamed(c)
	}
}

func (l *ClockLog) markNamed(c SenderClock) {
	for name := range l.named {
		if len(l.named) < maxNamed {
			break
		}
		delete(l.named, name)
	}
	l.named[c.Name] = c.Behind
}

// allows reports whether one more line may be logged.
func (l *ClockLog) allows(now time.Time) bool {
	_, ok := l.lines.Allow(clockLines, now)
	return ok
}

func clockNames(all []SenderClock) string {
	var names []string
	for _, c := range all[:min(namedAtOnce, len(all))] {
		names = append(names, c.Name+" ("+c.Words()+")")
	}
	if more := len(all) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// Words returns how far the clock is off: "4s slow".
func (c SenderClock) Words() string {
	if c.Behind < 0 {
		return c.Behind.Abs().Round(100*time.Millisecond).String() + " fast"
	}
	return c.Behind.Round(100*time.Millisecond).String() + " slow"
}
