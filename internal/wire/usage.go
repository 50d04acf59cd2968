package wire

import (
	"bytes"
	"strconv"
	"time"
)

// Kinds of [OriginLine] that carry a [Usage], in microseconds: the line's N is Busy, and its name
// "begun,ended,took,refused". They are sent for rules that find hot keys by their cost.
const (
	KeyUsage   OriginKind = 'u' // of a key
	RouteUsage OriginKind = 't' // of all keys of a route; the line's key is the route
)

// Usage is the use that requests made of a back end within an interval of 100 ms.
type Usage struct {
	Busy time.Duration // time of the requests within the interval, whether they ended or not
	Took time.Duration // whole time of those that ended
	// Begun and Ended count requests that were admitted, Refused those that a hold refused.
	Begun, Ended, Refused int64
}

// Add adds another usage.
func (u *Usage) Add(more *Usage) {
	u.Busy += more.Busy
	u.Took += more.Took
	u.Begun += more.Begun
	u.Ended += more.Ended
	u.Refused += more.Refused
}

// Sub subtracts a part of the usage.
func (u *Usage) Sub(part *Usage) {
	u.Busy -= part.Busy
	u.Took -= part.Took
	u.Begun -= part.Begun
	u.Ended -= part.Ended
	u.Refused -= part.Refused
}

// Encode returns the N and the name of an [OriginLine].
func (u *Usage) Encode() (n int64, name []byte) {
	for i, v := range [...]int64{u.Begun, u.Ended, u.Took.Microseconds(), u.Refused} {
		if i > 0 {
			name = append(name, ',')
		}
		name = strconv.AppendInt(name, min(max(v, 0), MaxCount), 10)
	}
	return min(max(u.Busy.Microseconds(), 0), MaxCount), name
}

// ParseUsage reads what [Usage.Encode] returned.
func ParseUsage(n int64, name []byte) (u Usage, ok bool) {
	u.Busy = time.Duration(n) * time.Microsecond
	var took int64
	for i, to := range [...]*int64{&u.Begun, &u.Ended, &took, &u.Refused} {
		field, rest, more := bytes.Cut(name, []byte{','})
		if *to, ok = digits(field); !ok || more != (i < 3) || *to > MaxCount {
			return Usage{}, false
		}
		name = rest
	}
	u.Took = time.Duration(took) * time.Microsecond
	return u, true
}
