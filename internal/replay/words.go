package replay

import (
	"strconv"
	"strings"

	"github.com/hotparam/hotparam"
)

// Words is a threshold in one word: "200/s", "20%/1m" of the route, "8x/1m" over
// the baseline, "top 3/1m". Nil has none.
func Words(t *hotparam.Threshold) string {
	if t == nil {
		return ""
	}
	rate := t.Rate.String()
	_, per, _ := strings.Cut(rate, "/")
	switch t.Kind {
	case hotparam.Share:
		return number(100*t.Factor) + "%/" + per
	case hotparam.Jump:
		return number(t.Factor) + "x/" + per
	case hotparam.Top:
		return "top " + strconv.Itoa(t.Top) + "/" + per
	}
	return rate
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }
