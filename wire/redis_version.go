package wire

import (
	"errors"
	"strconv"
	"strings"
)

// HotVersion names one state of the published hot set, written "run id:n". N
// rises by one with every change of the set, not of a rate. A run id stands for
// one unbroken history: when Redis loses state, the history starts again under
// another run id.
type HotVersion struct {
	Run string
	N   uint64
}

var errHotVersion = errors.New(`wire: version of the hot set: want "run id:n"`)

// maxRun bounds a run id; the publisher's are 16 hex digits.
const maxRun = 64

// ParseHotVersion reads what [HotVersion.String] wrote.
func ParseHotVersion(s string) (HotVersion, error) {
	run, digits, ok := strings.Cut(s, ":")
	if !ok || run == "" || len(run) > maxRun || strings.ContainsFunc(run, notRun) {
		return HotVersion{}, errHotVersion
	}
	n, err := strconv.ParseUint(digits, 10, 53) // the publisher's script counts in float64
	if err != nil || n == 0 || digits[0] == '0' || digits[0] == '+' {
		return HotVersion{}, errHotVersion
	}
	return HotVersion{Run: run, N: n}, nil
}

func notRun(r rune) bool {
	return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}

// IsZero reports whether there is no version: nothing was published yet.
func (v HotVersion) IsZero() bool { return v == HotVersion{} }

// String returns the version as it stands in Redis; empty for the zero value.
func (v HotVersion) String() string {
	if v.IsZero() {
		return ""
	}
	return v.Run + ":" + strconv.FormatUint(v.N, 10)
}
