package page

import (
	"math"
	"strconv"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/listed"
	"github.com/hotparam/hotparam/cmd/internal/live"
	"github.com/hotparam/hotparam/internal/hotwords"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// keyRow is a hot key as sent in a stream: the fields of /api/v1/hot, without those that change
// each second and are shown only for a selected key. Rows are comparable.
type keyRow struct {
	ID        uint32  `json:"id"`
	Key       string  `json:"key"`
	Rule      string  `json:"rule"`
	Rate      float64 `json:"rate"`
	Low       int64   `json:"low"`
	High      bound   `json:"high"`
	Estimated bool    `json:"estimated"`
	listed.Cause
	Limit  string     `json:"limit"`
	Burst  int64      `json:"burst"`
	Mode   rules.Mode `json:"mode"`
	Usual  bool       `json:"usual"`
	Spared bool       `json:"spared"`
	Since  time.Time  `json:"since"`
	Owner  string     `json:"owner"`
	// Admitted is the rate that all instances admit beside the limit, in words. It is empty if
	// the rate is not known.
	Admitted string `json:"admitted"`
	// Refused describes how many requests all instances refuse, and Share is their share of all. They
	// are empty if that is not known.
	Refused string  `json:"refused"`
	Share   float64 `json:"refused_share"`
	// Allowed is what the limits allow all instances per second, or 0 if that is no number.
	Allowed float64 `json:"allowed"`
	// OnHot describes how on_hot answers the key's requests. It is empty if it answers none.
	OnHot string      `json:"on_hot"`
	Hold  listed.Hold `json:"hold,omitzero"`
}

// bound is a count that is null in JSON if it is unknown.
type bound int64

// MarshalJSON implements json.Marshaler.
func (b bound) MarshalJSON() ([]byte, error) { return b.append(nil), nil }

func (b bound) append(dst []byte) []byte {
	if int64(b) == published.Unknown {
		return append(dst, "null"...)
	}
	return strconv.AppendInt(dst, int64(b), 10)
}

func newRow(id uint32, key *live.HotKey) keyRow {
	h := &key.Hot
	r := keyRow{
		ID: id, Key: h.Text, Rule: h.Rule, Rate: h.Rate, Low: h.Low, High: bound(h.High), Estimated: h.Estimated,
		Limit: h.Limit.String(), Burst: h.Burst, Mode: h.Mode, Usual: h.Usual, Spared: h.Spared, Since: h.Since.UTC(), Owner: h.Owner,
		Cause: listed.CauseOf(h.Cause), OnHot: hotwords.OnHot(key.Admitted.OnHot), Hold: listed.HoldOf(h.Hold),
	}
	if key.Admitted.Known() {
		r.Admitted = hotwords.Admitted(key.Admitted, h.Cause.Unit)
		r.Allowed = key.Admitted.Allowed()
	} else if !h.Limit.IsZero() {
		r.Allowed = h.Limit.PerSecond()
	}
	if rates := key.Admitted.Rates; rates.Requests() > 0 {
		r.Refused, r.Share = hotwords.Refused(key.Admitted), math.Round(1000*rates.RefusedShare())/1000
	}
	return r
}

// sameButCounts reports whether two rows differ at most in their counts.
func (r keyRow) sameButCounts(other keyRow) bool {
	other.Rate, other.Low, other.High, other.Admitted, other.OnHot, other.Refused, other.Share = r.Rate, r.Low, r.High, r.Admitted, r.OnHot, r.Refused, r.Share
	return r == other
}

// appendCounts appends the row's counts as an element of a JSON array.
func (r *keyRow) appendCounts(dst []byte) []byte {
	dst = append(dst, '[')
	dst = strconv.AppendUint(dst, uint64(r.ID), 10)
	dst = append(dst, ',')
	dst = appendPoint(dst, r.Rate, r.Low, r.High)
	dst = append(dst[:len(dst)-1], ',')
	dst = append(strconv.AppendQuote(dst, r.Admitted), ',') // these words need no escapes
	dst = append(strconv.AppendQuote(dst, r.OnHot), ',')
	dst = append(strconv.AppendQuote(dst, r.Refused), ',')
	return append(strconv.AppendFloat(dst, r.Share, 'g', 3, 64), ']')
}

// appendPoint appends a rate, to six digits, and its bounds, and ends the array.
func appendPoint(dst []byte, rate float64, low int64, high bound) []byte {
	dst = strconv.AppendFloat(dst, rate, 'g', 6, 64)
	dst = append(dst, ',')
	dst = strconv.AppendInt(dst, low, 10)
	dst = append(dst, ',')
	return append(high.append(dst), ']')
}
