package onhot

import (
	"net/textproto"
	"strings"
)

// acceptedCodings returns what the handler sees of Accept-Encoding: the known codings that are
// accepted, in one order and without weights. Clients differ in the order, the weights and the
// codings that no server has, and the answers to all of them would be kept separately.
func acceptedCodings(values []string) string {
	accepted := 0
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			name, weight, _ := strings.Cut(part, ";")
			name = textproto.TrimString(name)
			for i, coding := range codings {
				if (strings.EqualFold(name, coding) || i == 0 && strings.EqualFold(name, "x-gzip")) && !isZero(weight) {
					accepted |= 1 << i
				}
			}
		}
	}
	return codingSets[accepted]
}

var codings = [...]string{"gzip", "br", "zstd", "deflate"}

// codingSets has the text of each set of codings. Bit i is codings[i].
var codingSets = func() (sets [1 << len(codings)]string) {
	for set := range sets {
		var names []string
		for i, coding := range codings {
			if set>>i&1 == 1 {
				names = append(names, coding)
			}
		}
		sets[set] = strings.Join(names, ", ")
	}
	return sets
}()

// isZero reports whether the parameters are a weight of zero, which refuses a coding.
func isZero(weight string) bool {
	name, value, _ := strings.Cut(weight, "=")
	value = textproto.TrimString(value)
	return strings.EqualFold(textproto.TrimString(name), "q") && strings.HasPrefix(value, "0") && strings.Trim(value, "0.") == ""
}
