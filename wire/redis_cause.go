package wire

import (
	"strconv"
	"strings"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// appendCause appends the fields of the threshold that made a key hot, nothing if it is
// not known:
//
//	,"kind":"share","threshold":"20%/10s","min":50,"window_ms":10000,"unit":"requests"
//
// A jump over days has its past behind the window, "8x/10s over day", which readers of the
// version before pass over. min is the count that was reached, or for the kinds that compare the least count; it
// and the entry's low and high are numbers of the unit, within the window. Readers of
// the version before pass over all of them.
func appendCause(dst []byte, c rules.Cause) []byte {
	if c.IsZero() {
		return dst
	}
	dst = appendJSONString(append(dst, `,"kind":`...), c.Kind.String())
	dst = appendJSONString(append(dst, `,"threshold":`...), c.String())
	dst = strconv.AppendInt(append(dst, `,"min":`...), c.Rate.N, 10)
	dst = strconv.AppendInt(append(dst, `,"window_ms":`...), c.Rate.Per.Milliseconds(), 10)
	return appendJSONString(append(dst, `,"unit":`...), c.Unit.String())
}

type hotCause struct {
	Kind      string `json:"kind"`
	Threshold string `json:"threshold"`
	Min       int64  `json:"min"`
	WindowMS  int64  `json:"window_ms"`
	Unit      string `json:"unit"`
}

// maxWindowMS is that of the longest window.
const maxWindowMS = int64(rules.MaxWindow / time.Millisecond)

// cause returns what was read. A cause that is not there, or that a version to come has
// written in another way, is not known: it is only looked at, and costs no entry.
func (i *hotCause) cause() rules.Cause {
	kind, known := rules.ParseKind(i.Kind)
	unit, counted := rules.ParseUnit(i.Unit)
	if !known || !counted || i.Min < 1 || i.WindowMS < 1 || i.WindowMS > maxWindowMS {
		return rules.Cause{}
	}
	c := rules.Cause{Kind: kind, Unit: unit, Rate: rules.Rate{N: i.Min, Per: time.Duration(i.WindowMS) * time.Millisecond}}
	var err error
	switch terms, per, _ := strings.Cut(i.Threshold, "/"); kind {
	case rules.Share:
		c.Factor, err = rules.ParseFraction(strings.TrimSuffix(terms, "%"), 100)
	case rules.Jump:
		c.Factor, err = rules.ParseFraction(strings.TrimSuffix(terms, "x"), 1)
		if _, past, found := strings.Cut(per, " over "); found {
			if c.Over, found = rules.ParseOver(past); !found {
				return rules.Cause{}
			}
		}
	case rules.Top:
		c.Top, err = strconv.Atoi(strings.TrimPrefix(terms, "top "))
	}
	if err != nil || c.Top < 0 || c.Top > rules.MaxTop {
		return rules.Cause{}
	}
	return c
}
