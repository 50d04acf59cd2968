package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/hotparam/hotparam/rules"
)

// Holes stand in an encoded value for what only Redis can tell: the script that
// publishes fills them on Redis's own clock. They are raw control bytes, which
// JSON text never holds.
const (
	holeVersion = 1 // the version after the change, in a JSON string
	holeAt      = 2 // Redis's time, unix milliseconds
	holeUntil   = 3 // Redis's time plus the entry's time to live
	holeCool    = 4 // the cooled members, JSON strings joined by commas
)

// AppendHotInfo appends the value of one entry of the info hash:
//
//	{"low":212,"high":230,"since":1732172445123,"until":1732172460123,"limit":"50/s","burst":100,"mode":"limit","owner":"statsd","ratio":1.06,"kind":"rate","threshold":"200/s","min":200,"window_ms":1000,"unit":"requests"}
//
// Times are unix milliseconds; high is null when unknown, limit when there is
// none; "also" lists the other thresholds that hold the key hot; "estimated":true follows when part of the count was sampled, "usual":true and
// "spared":true of a key that is, and where the key's requests come from as "top" when
// it is known. The
// key itself is the member that the value is stored under. Where Until is zero its
// place is a hole for the publisher's script.
func AppendHotInfo(dst []byte, h rules.Hot) []byte {
	dst = strconv.AppendInt(append(dst, `{"low":`...), h.Low, 10)
	dst = append(dst, `,"high":`...)
	if h.High == rules.Unknown {
		dst = append(dst, "null"...)
	} else {
		dst = strconv.AppendInt(dst, h.High, 10)
	}
	dst = strconv.AppendInt(append(dst, `,"since":`...), h.Since.UnixMilli(), 10)
	dst = append(dst, `,"until":`...)
	if h.Until.IsZero() {
		dst = append(dst, holeUntil)
	} else {
		dst = strconv.AppendInt(dst, h.Until.UnixMilli(), 10)
	}
	dst = append(dst, `,"limit":`...)
	if h.Limit.IsZero() {
		dst = append(dst, "null"...)
	} else {
		dst = appendJSONString(dst, h.Limit.String())
	}
	dst = strconv.AppendInt(append(dst, `,"burst":`...), h.Burst, 10)
	dst = appendJSONString(append(dst, `,"mode":`...), string(h.Mode))
	dst = appendJSONString(append(dst, `,"owner":`...), h.Owner)
	dst = appendJSONFloat(append(dst, `,"ratio":`...), h.Ratio)
	dst = appendCause(dst, h.Cause)
	if h.Also != "" {
		dst = appendJSONString(append(dst, `,"also":`...), h.Also)
	}
	if h.Estimated {
		dst = append(dst, `,"estimated":true`...)
	}
	if h.Usual {
		dst = append(dst, `,"usual":true`...)
	}
	if h.Spared {
		dst = append(dst, `,"spared":true`...)
	}
	if h.Top != nil {
		dst = appendTop(append(dst, `,"top":`...), h.Top)
	}
	return append(dst, '}')
}

type hotInfo struct {
	Low   *int64     `json:"low"`
	High  *int64     `json:"high"`
	Since *int64     `json:"since"`
	Until *int64     `json:"until"`
	Limit *string    `json:"limit"`
	Burst int64      `json:"burst"`
	Mode  rules.Mode `json:"mode"`
	Owner string     `json:"owner"`
	Ratio *float64   `json:"ratio"`

	Estimated bool `json:"estimated"`
	Usual     bool `json:"usual"`
	Spared    bool `json:"spared"`

	Also string  `json:"also"`
	Top  *hotTop `json:"top"`
	hotCause
}

var (
	errInfoMissing = errors.New("low, since or until is missing")
	errInfoCount   = errors.New("a count is negative, or high is below low")
	errInfoRatio   = errors.New("the ratio is negative")
	errInfoTime    = errors.New("a time is not unix milliseconds")
	errInfoMode    = errors.New("the mode is not limit, wait, serve, shadow or watch")
	errInfoLimit   = errors.New("mode and limit do not agree")
)

// ParseHotInfo reads what [AppendHotInfo] wrote, in any order of the fields and
// with fields that are not known here. Without a ratio, as earlier versions wrote
// it, the ratio is 1: the key reached its threshold; without a cause that is not known.
// The key and the rate are left empty: they stand in the member and in its score.
func ParseHotInfo(value []byte) (rules.Hot, error) {
	var info hotInfo
	if err := json.Unmarshal(value, &info); err != nil {
		return rules.Hot{}, fmt.Errorf("wire: info of a hot key: %w", err)
	}
	h, err := info.hot()
	if err != nil {
		return rules.Hot{}, fmt.Errorf("wire: info of a hot key: %w", err)
	}
	return h, nil
}

// maxMillis is the last millisecond of the year 9999: JSON readers that hold
// numbers as float64 keep everything below it exact.
const maxMillis = 253402300799999

func (i *hotInfo) hot() (rules.Hot, error) {
	if i.Low == nil || i.Since == nil || i.Until == nil {
		return rules.Hot{}, errInfoMissing
	}
	h := rules.Hot{Low: *i.Low, High: rules.Unknown, Ratio: 1, Burst: i.Burst, Mode: i.Mode, Owner: i.Owner, Estimated: i.Estimated, Usual: i.Usual, Spared: i.Usual && i.Spared, Cause: i.cause(), Also: i.Also}
	if i.Ratio != nil {
		if h.Ratio = *i.Ratio; h.Ratio < 0 {
			return rules.Hot{}, errInfoRatio
		}
	}
	if i.High != nil {
		h.High = *i.High
		if h.High < h.Low {
			return rules.Hot{}, errInfoCount
		}
	}
	if h.Low < 0 || h.Burst < 0 {
		return rules.Hot{}, errInfoCount
	}
	if *i.Since < 0 || *i.Since > maxMillis || *i.Until < 0 || *i.Until > maxMillis {
		return rules.Hot{}, errInfoTime
	}
	h.Since, h.Until = time.UnixMilli(*i.Since), time.UnixMilli(*i.Until)
	if i.Limit != nil {
		limit, err := rules.ParseRate(*i.Limit)
		if err != nil {
			return rules.Hot{}, err
		}
		h.Limit = limit
	}
	switch h.Mode {
	case rules.ModeLimit, rules.ModeWait, rules.ModeServe, rules.ModeShadow:
		if h.Limit.IsZero() != (h.Burst == 0) { // without either, by concurrency alone
			return rules.Hot{}, errInfoLimit
		}
	case rules.ModeWatch:
		if !h.Limit.IsZero() {
			return rules.Hot{}, errInfoLimit
		}
	default:
		return rules.Hot{}, errInfoMode
	}
	var err error
	if h.Top, err = i.Top.attribution(); err != nil {
		return rules.Hot{}, err
	}
	return h, nil
}

// appendJSONString appends s as a JSON string. Unlike encoding/json it leaves
// &, < and > as they are, because people read these values in redis-cli.
func appendJSONString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
			i++
		case c < ' ' || c == 0x7f:
			dst = append(dst, '\\', 'u', '0', '0', upperHex[c>>4], upperHex[c&15])
			i++
		case c < utf8.RuneSelf:
			dst = append(dst, c)
			i++
		default:
			r, size := utf8.DecodeRuneInString(s[i:])
			dst = utf8.AppendRune(dst, r) // what is not UTF-8 becomes U+FFFD
			i += size
		}
	}
	return append(dst, '"')
}

// appendJSONFloat appends f in full precision; what JSON cannot hold is 0.
func appendJSONFloat(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		f = 0
	}
	return strconv.AppendFloat(dst, f, 'f', -1, 64)
}
