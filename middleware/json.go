package middleware

import (
	"encoding/json"
	"math/bits"
	"strings"
	"unsafe"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
)

// encoding/json validates JSON and bounds its depth. Then the code here walks it and relies on
// its being valid. The walk goes through the text once, allocates only for strings with escapes
// or beyond ASCII, and goes no deeper than the longest path. The tokens of a json.Decoder were
// rejected: they cost several times as much as a decode, and an allocation each.

// readJSON adds the values of a JSON body that rules of the route name.
func (r *reading) readJSON() {
	if text, ok := r.readBody(rules.JSON); ok {
		r.endBody(r.addJSON(text))
	}
}

// addJSON adds the values of a document that rules of the route name, and reports whether the
// document is valid.
func (r *reading) addJSON(text []byte) bool {
	if !json.Valid(text) {
		return false
	}
	for begin := 0; begin < len(r.route.bodyReaders); begin += maxWalked {
		w := jsonWalk{reading: r, text: text, readers: r.route.bodyReaders[begin:min(begin+maxWalked, len(r.route.bodyReaders))]}
		var all uint64
		for i, x := range w.readers {
			if x.param.Source == rules.JSON {
				all |= 1 << i
			}
		}
		if all != 0 {
			w.value(base.SkipJSONSpace(text, 0), 0, all)
		}
	}
	return true
}

// maxWalked is the number of readers that walk through a document at a time.
const maxWalked = 64

// jsonWalk walks through a valid document. Positions are indices of bytes in text. Methods
// that read something return the position behind it. on is the set of readers, by their
// index, whose paths lead through the present value; depth is the value's depth.
type jsonWalk struct {
	reading *reading
	text    []byte
	readers []*paramReader
}

// value reads any value. Its recursion ends with the longest path.
func (w *jsonWalk) value(i, depth int, on uint64) int {
	switch w.text[i] {
	case '{':
		return w.object(i, depth, on)
	case '[':
		return w.array(i, depth, on)
	}
	end := base.SkipJSON(w.text, i)
	for ; on != 0; on &= on - 1 {
		if x := w.readers[bits.TrailingZeros64(on)]; len(x.steps) == depth {
			w.addScalar(x, w.text[i:end])
		}
	}
	return end
}

// addScalar adds a string, a number as written, true or false. It skips null.
func (w *jsonWalk) addScalar(x *paramReader, raw []byte) {
	switch raw[0] {
	case 'n':
	case '"':
		w.reading.addNamed(x, jsonString(raw))
	default:
		w.reading.addNamed(x, unsafe.String(&raw[0], len(raw))) // addNamed copies it
	}
}

func (w *jsonWalk) object(i, depth int, on uint64) int {
	i = base.SkipJSONSpace(w.text, i+1)
	for w.text[i] != '}' {
		end := base.SkipJSONString(w.text, i)
		inner := w.member(w.text[i:end], depth, on)
		i = base.SkipJSONSpace(w.text, base.SkipJSONSpace(w.text, end)+1) // skips the colon
		if inner != 0 {
			i = w.value(i, depth+1, inner)
		} else {
			i = base.SkipJSON(w.text, i)
		}
		if i = base.SkipJSONSpace(w.text, i); w.text[i] == ',' {
			i = base.SkipJSONSpace(w.text, i+1)
		}
	}
	return i + 1
}

// member returns the readers whose next step has this name. Case is ignored, as in
// encoding/json, so that no spelling of a name hides a value from a rule.
func (w *jsonWalk) member(raw []byte, depth int, on uint64) (inner uint64) {
	name, known := "", false
	for ; on != 0; on &= on - 1 {
		i := bits.TrailingZeros64(on)
		steps := w.readers[i].steps
		if len(steps) <= depth || steps[depth].Element {
			continue
		}
		if !known {
			name, known = jsonString(raw), true
		}
		if strings.EqualFold(name, steps[depth].Name) {
			inner |= 1 << i
		}
	}
	return inner
}

func (w *jsonWalk) array(i, depth int, on uint64) int {
	var inner uint64
	for ; on != 0; on &= on - 1 {
		n := bits.TrailingZeros64(on)
		if steps := w.readers[n].steps; len(steps) > depth && steps[depth].Element {
			inner |= 1 << n
		}
	}
	if inner == 0 {
		return base.SkipJSON(w.text, i)
	}
	i = base.SkipJSONSpace(w.text, i+1)
	for w.text[i] != ']' {
		if i = base.SkipJSONSpace(w.text, w.value(i, depth+1, inner)); w.text[i] == ',' {
			i = base.SkipJSONSpace(w.text, i+1)
		}
	}
	return i + 1
}

// jsonString decodes a quoted string. Invalid text becomes U+FFFD, as in encoding/json. The
// result is valid as long as raw is.
func jsonString(raw []byte) string {
	text := raw[1 : len(raw)-1]
	for _, c := range text {
		if c == '\\' || c >= 0x80 {
			var s string
			if json.Unmarshal(raw, &s) != nil { // impossible, since raw is valid
				return ""
			}
			return s
		}
	}
	return unsafe.String(unsafe.SliceData(text), len(text))
}
