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
		return t.Factor.Decimal(100) + "%/" + per
	case hotparam.Jump:
		return t.Factor.Decimal(1) + "x/" + per
	case hotparam.Top:
		return "top " + strconv.Itoa(t.Top) + "/" + per
	}
	return rate
}
