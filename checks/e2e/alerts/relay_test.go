package alerts

import (
	"bytes"
	"math/rand/v2"
	"regexp"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

// countRelay forwards packets of counts from instances to an aggregator.
type countRelay struct {
	*testenv.UDPRelay
	lose   atomic.Int64 // packets lost of 100
	offset atomic.Int64 // added to the clock of one instance, in nanoseconds
}

// newCountRelay returns a relay that can shift the clock of the instance named slow.
func newCountRelay(t *testing.T, target, slow string) *countRelay {
	t.Helper()
	r := new(countRelay)
	r.UDPRelay = testenv.NewUDPRelay(t, func(packet []byte, send func([]byte)) {
		if rand.Int64N(100) < r.lose.Load() {
			return
		}
		if meta, _, _ := bytes.Cut(packet, []byte("\n")); bytes.Contains(meta, []byte(slow)) {
			packet = testenv.ShiftClock(packet, time.Duration(r.offset.Load()))
		}
		send(packet)
	}, target)
	return r
}

// timeRelay forwards connections to a Redis and shifts its time, so that its clients see their
// own clock as off.
type timeRelay struct {
	*testenv.Relay
	offset atomic.Int64 // added to Redis's clock, in seconds
}

func newTimeRelay(t *testing.T, target string) *timeRelay {
	t.Helper()
	r := &timeRelay{Relay: testenv.NewRelay(t, target)}
	r.ChangeAnswers(r.shift)
	return r
}

// redisSeconds matches a Unix time in seconds in an answer of Redis. No other text of ten digits
// is near the present time.
var redisSeconds = regexp.MustCompile(`\$10\r\n\d{10}\r\n`)

func (r *timeRelay) shift(answer []byte) []byte {
	offset := r.offset.Load()
	if offset == 0 {
		return answer
	}
	return redisSeconds.ReplaceAllFunc(answer, func(text []byte) []byte {
		at, err := strconv.ParseInt(string(text[5:15]), 10, 64)
		if err != nil || time.Since(time.Unix(at, 0)).Abs() > time.Hour {
			return text
		}
		return []byte("$10\r\n" + strconv.FormatInt(at+offset, 10) + "\r\n")
	})
}
