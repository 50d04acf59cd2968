package redislimiter

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// Outcomes of an ask, as in lua/run.lua.
const (
	codeDenied  = 0
	codeAllowed = 1
	codeLocked  = 2
	codeAgain   = 3 // the time, which replaces the mark, is outside the periods of the calendar that were sent
	codeFailed  = 4 // an error, whose text follows the numbers
)

// answer is the reply of a script: the packed numbers, the errors of the keys with codeFailed, in
// order, and the number of keys of a foreign type that were deleted.
type answer struct {
	packed any
	errors []any
	healed int64
}

// readAnswer parses the reply of lua/run.lua. A list is the rare form.
func readAnswer(value any) answer {
	list, ok := value.([]any)
	if !ok || len(list) != 2 {
		return answer{packed: value}
	}
	healed, _ := list[0].(int64)
	texts, _ := list[1].([]any)
	if len(texts) == 0 {
		return answer{packed: value}
	}
	return answer{packed: texts[0], errors: texts[1:], healed: max(healed, 0)}
}

// failure removes and returns the next error.
func (a *answer) failure() error {
	if len(a.errors) == 0 {
		return errors.New("unexpected answer: an error without its text")
	}
	text, _ := a.errors[0].(string)
	a.errors = a.errors[1:]
	return scriptError(text)
}

// reply holds the packed numbers of a reply: the script's time in µs, then the numbers of each
// op, all as floats of eight bytes.
type reply string

const (
	numberSize = 8
	perOp      = 7 // numbers of each op
)

// errLate is the error of a script that began after the caller's deadline, and did nothing.
var errLate = fmt.Errorf("the script began after the deadline: %w", context.DeadlineExceeded)

// readReply parses the numbers for the given number of ops, and their time. It returns the time
// of a script that was late, too.
func readReply(packed any, ops int) (r reply, now int64, err error) {
	text, ok := packed.(string)
	if ok && len(text) == numberSize {
		if now, ok = reply(text).number(0); ok {
			return "", now, errLate
		}
	}
	if !ok || len(text) != numberSize*(1+perOp*ops) {
		return "", 0, fmt.Errorf("unexpected answer %.200q for %d keys", fmt.Sprint(packed), ops)
	}
	r = reply(text)
	if now, ok = r.number(0); !ok {
		return "", 0, fmt.Errorf("unexpected answer %.200q: no time", text)
	}
	return r, now, nil
}

// number returns the i-th number, if it is whole and Lua's floats represent it exactly. As µs it
// also fits a time.Duration.
func (r reply) number(i int) (int64, bool) {
	var raw [numberSize]byte
	copy(raw[:], r[numberSize*i:])
	f := math.Float64frombits(binary.LittleEndian.Uint64(raw[:]))
	if !(f >= 0 && f <= maxWhole) || f != math.Trunc(f) {
		return 0, false
	}
	return int64(f), true
}

// errFailed means that a key had an error; answer.failure returns it.
var errFailed = errors.New("the script failed")

var reasons = [...]rules.Reason{codeDenied: rules.ReasonLimited, codeAllowed: rules.ReasonWithin, codeLocked: rules.ReasonLocked}

// result returns the result of the i-th op at now, in µs. If again is true, the op has to be sent
// again with the periods of its calendar at about.
func (r reply) result(i int, now, limit int64) (result limiter.Result, about int64, again bool, err error) {
	var n [perOp]int64
	for k := range n {
		var ok bool
		if n[k], ok = r.number(1 + perOp*i + k); !ok {
			return result, 0, false, fmt.Errorf("unexpected answer: no whole number at %d of key %d", k, i)
		}
	}
	switch {
	case n[0] == codeFailed:
		return result, 0, false, errFailed
	case n[0] > codeAgain || n[1] > limit:
		return result, 0, false, fmt.Errorf("unexpected answer %d for a limit of %d", n, limit)
	case n[0] == codeAgain:
		return result, n[6], true, nil
	}
	result = limiter.Result{
		Decision: rules.Decision{
			Allowed: n[0] == codeAllowed, Reason: reasons[n[0]], Limit: limit, Remaining: n[1],
			RetryAfter: time.Duration(n[2]) * time.Microsecond,
			ResetAfter: time.Duration(n[3]) * time.Microsecond,
			Delay:      time.Duration(n[4]) * time.Microsecond,
		},
		Taken: n[5], Mark: n[6],
	}
	if result.Taken > 0 {
		result.Receipt.At = time.Duration(now) * time.Microsecond
	}
	return result, 0, false, nil
}
