package hotwords

import (
	"math"

	"github.com/hotparam/hotparam/internal/admitted"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// Refused describes how many requests of a hot key all instances refuse: "12,300 of 15,000/s". It
// returns "-" if they report none. In shadow mode they would refuse as many.
func Refused(g admitted.Gauge) string {
	all := g.Rates.Requests()
	if all == 0 {
		return "-"
	}
	words := perSecond(g.Rates.Refused) + " of " + perSecond(all) + "/s"
	if g.AtLeast {
		words = "≥ " + words
	}
	if g.Rates.Waited > 0 {
		words += ", " + perSecond(g.Rates.Waited) + "/s waited"
	}
	return words
}

// perSecond formats a rate in whole numbers. A rate that is not zero is not shown as zero.
func perSecond(rate float64) string {
	if 0 < rate && rate < 0.5 {
		return "<1"
	}
	return Thousands(int64(math.Round(rate)))
}

// Outcomes describes the outcomes of a key's requests since it became hot: "61,200 of 75,000
// refused, 40 waited". It returns "" if that is not known.
func Outcomes(h *published.Hot) string {
	o := h.Outcomes
	if o == nil {
		return ""
	}
	words := Thousands(o.Refused) + " of " + Thousands(o.Requests())
	if h.Mode == rules.ModeShadow {
		words += " would have been"
	}
	words += " refused"
	if o.Waited > 0 {
		words += ", " + Thousands(o.Waited) + " waited"
	}
	if o.Served > 0 {
		words += ", " + Thousands(o.Served) + " answered by on_hot"
	}
	return words
}
