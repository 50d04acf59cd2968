package suggest

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// valueCounts counts the requests for one value, in consecutive windows of each length in windows.
// A peak may therefore be half of the peak in a sliding window. It is only the start of the
// search; a replay decides.
type valueCounts struct {
	requests int64
	counts   [len(windows)]windowCount // counts by length of the window
	parts    *[parts]int32             // requests by part of the log; nil unless the value may be usual
}

// windowCount is the count in the present window, and the highest of any window.
type windowCount struct {
	number  int64 // number of the window since the Unix epoch
	n, peak int32
}

func (v *valueCounts) count(t time.Time) {
	v.requests++
	for i, w := range windows {
		s, number := &v.counts[i], t.UnixNano()/int64(w)
		if s.number != number {
			s.number, s.n = number, 0
		}
		s.n++
		s.peak = max(s.peak, s.n)
	}
}

const (
	// parts is the number of equal parts of the log that are examined separately.
	parts = 20
	// leastInPart is the number of requests that a part needs in order to be judged.
	leastInPart = 10
	// usualShare is the share of a part's requests that makes a value usual in that part.
	usualShare = 0.1
	// optionShare is the share of all requests from which a few usual values are an option.
	optionShare = 0.8
	// noneShare is the share of all requests from which a word for a missing value is usual.
	noneShare = 0.01
)

// Usual is a value without a limit in the proposed rule, since a limit would refuse the traffic
// of an ordinary day.
type Usual struct {
	Value string  `json:"value"`
	Share float64 `json:"share"` // share of the requests with the parameter
	None  bool    `json:"none"`  // whether the value is a word for a missing value, such as null
}

// noneWords are the texts that clients and servers write for a missing value, in lower case.
// Their requests have nothing else in common.
var noneWords = []string{
	"", "-", "--", "_", "0", "null", "nil", "none", "undefined", "nan", "n/a", "unknown",
	"(null)", "(none)", "(not set)", "<null>", "[object object]",
}

func isNone(text string) bool {
	return slices.Contains(noneWords, strings.ToLower(strings.TrimSpace(text)))
}

// mayBeUsual reports whether a value has enough requests to be counted by part of the log. A usual
// value has usualShare of the requests in half of the parts, and so half of that share in all.
func (p *routeParam) mayBeUsual(v *valueCounts) bool {
	return float64(v.requests) >= usualShare*float64(p.requests)/2 && v.requests >= leastInPart
}

// usual returns the values whose requests are no sign of trouble, most frequent first. These are
// words for a missing value that are not rare, and values that have usualShare of the requests in
// at least half of the parts of the log. A value whose requests come in one burst is not usual.
func (p *routeParam) usual() []Usual {
	var all []Usual
	for text, v := range p.values {
		frequentNone := isNone(text) && float64(v.requests) >= noneShare*float64(p.requests)
		if frequentNone || v.parts != nil && p.alwaysThere(v) {
			all = append(all, Usual{Value: text, Share: float64(v.requests) / float64(p.requests), None: isNone(text)})
		}
	}
	slices.SortFunc(all, func(a, b Usual) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Value, b.Value))
	})
	return all
}

// alwaysThere reports whether a value has usualShare of the requests in half of the judged parts.
func (p *routeParam) alwaysThere(v *valueCounts) bool {
	judged, with := 0, 0
	for i, n := range p.parts {
		if n < leastInPart {
			continue
		}
		judged++
		if float64(v.parts[i]) >= usualShare*float64(n) {
			with++
		}
	}
	return judged > 0 && 2*with >= judged
}

// isOption reports whether several usual values have nearly all requests. The parameter then
// selects among a few values, and others are stray.
func isOption(usual []Usual) bool {
	n, share := 0, 0.0
	for _, u := range usual {
		if !u.None {
			n++
			share += u.Share
		}
	}
	return n > 1 && share >= optionShare
}

// plainText decodes a value, since rules compare values as decoded.
func plainText(text string, decode func(string) (string, error)) string {
	if plain, err := decode(text); err == nil {
		text = plain
	}
	return text[:min(len(text), maxText)]
}

// isWritable reports whether the proposed rules may name the value. They cannot if it contains a
// star, which would match any text, or is so long that it may have been cut. They must not if it
// looks private.
func (u *Usual) isWritable() bool {
	return len(u.Value) < maxText && utf8.ValidString(u.Value) && !strings.Contains(u.Value, "*") && !looksPrivate(u.Value)
}

// looksPrivate reports whether a value looks like a token or a person's address.
func looksPrivate(text string) bool {
	digits, letters := 0, 0
	for i := range len(text) {
		switch c := text[i]; {
		case '0' <= c && c <= '9':
			digits++
		case 'a' <= c|0x20 && c|0x20 <= 'z':
			letters++
		case c == ' ':
			return false
		}
	}
	return len(text) >= 20 && digits >= 3 && letters >= 3 || strings.HasPrefix(text, "eyJ") || strings.Contains(text, "@")
}

// displayed returns a value for display, or "" if it looks private. An empty value is shown as a pair
// of quotes.
func displayed(text string) string {
	const limit = 40
	switch {
	case text == "":
		return `""`
	case looksPrivate(text):
		return ""
	}
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return text
}
