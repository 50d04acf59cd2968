package exact

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// maxKeys is the most keys that a rule counts for one request. A further key stands for the rest.
const maxKeys = 8

// Keys returns the texts of the keys that a request counts under a rule for all requests. keyBy is
// "all", "each", or names of query parameters separated by commas.
func Keys(keyBy, method, target string) []string {
	path, query, _ := strings.Cut(target, "?")
	route := method + " " + canonicalPath(path)
	type pair struct{ name, value string }
	var pairs []pair
	for part := range strings.SplitSeq(query, "&") {
		if part != "" {
			name, value, _ := strings.Cut(part, "=")
			pairs = append(pairs, pair{decode(name), decode(value)})
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		if c := strings.Compare(a.name, b.name); c != 0 {
			return c
		}
		return strings.Compare(a.value, b.value)
	})
	text := func(pairs ...pair) string {
		var parts []string
		for _, p := range pairs {
			parts = append(parts, escape(p.name)+"="+escape(p.value))
		}
		if len(parts) == 0 {
			return shorten(route)
		}
		return shorten(route + "?" + strings.Join(parts, "&"))
	}
	beyond := shorten(route + "?~more")
	if keyBy == "all" {
		return []string{text(slices.DeleteFunc(pairs, func(p pair) bool { return isSecret(p.name) })...)}
	}
	values := make(map[string][]pair) // distinct values of each name
	var order []string
	for _, p := range slices.Compact(pairs) {
		if values[p.name] == nil {
			order = append(order, p.name)
		}
		values[p.name] = append(values[p.name], p)
	}
	if keyBy == "each" {
		order = slices.DeleteFunc(order, isSecret)
		var chosen []pair
		more := false
		for round := range len(pairs) { // the first value of each name, then the second
			for _, name := range order {
				if round >= len(values[name]) {
					continue
				}
				if len(chosen) == maxKeys {
					more = true
					break
				}
				chosen = append(chosen, values[name][round])
			}
		}
		var texts []string
		for _, p := range pairs {
			if index := slices.Index(chosen, p); index >= 0 {
				texts = append(texts, text(p))
				chosen = slices.Delete(chosen, index, index+1)
			}
		}
		if more {
			texts = append(texts, beyond)
		}
		return texts
	}
	// All pairings, by the order of the names in keyBy.
	pairings := [][]pair{nil}
	for name := range strings.SplitSeq(keyBy, ",") {
		if values[name] == nil {
			continue
		}
		var longer [][]pair
		for _, p := range pairings {
			for _, v := range values[name][:min(len(values[name]), maxKeys+1)] {
				longer = append(longer, append(slices.Clone(p), v))
			}
		}
		pairings = longer[:min(len(longer), maxKeys+1)]
	}
	if len(pairings[0]) == 0 {
		return nil
	}
	var texts []string
	for i, p := range pairings {
		if i == maxKeys {
			return append(texts, beyond)
		}
		slices.SortFunc(p, func(a, b pair) int { return strings.Compare(a.name, b.name) })
		texts = append(texts, text(p...))
	}
	return texts
}

var (
	escaped    = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)
	unreserved = regexp.MustCompile(`^[A-Za-z0-9\-._~]$`)
	notInPath  = regexp.MustCompile(`%[0-9A-Fa-f]{2}|[^A-Za-z0-9\-._~!$&'()*+,;=:@/]`)
)

func unhex(s string) string {
	b, _ := hex.DecodeString(s[1:])
	return string(b)
}

// decode decodes a name or value as in a form; a stray % stays.
func decode(s string) string {
	return escaped.ReplaceAllStringFunc(strings.ReplaceAll(s, "+", " "), unhex)
}

func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

func canonicalPath(path string) string {
	return notInPath.ReplaceAllStringFunc(path, func(s string) string {
		if s[0] == '%' && len(s) == 3 {
			if c := unhex(s); unreserved.MatchString(c) {
				return c
			}
			return strings.ToUpper(s)
		}
		var b strings.Builder
		for _, c := range []byte(s) {
			fmt.Fprintf(&b, "%%%02X", c)
		}
		return b.String()
	})
}

// Patterns of secret names, matched against the joined words of a name.
var (
	inName    = regexp.MustCompile(`(passwords?|passwd|passphrase|passcode|secrets?|credentials?|apikeys?|privatekey|accesskey|creditcard)$`)
	endOfName = regexp.MustCompile(`(token|tokenhint|session|sessionid|sessionkey|sessid|signature|authorization)[0-9]*$`)
	ordinary  = regexp.MustCompile(`(possession|obsession)[0-9]*$`)
	wholeName = regexp.MustCompile(`^(code|auth|sig|pwd|otp|jwt)$`)

	notInWord   = regexp.MustCompile(`[^A-Za-z0-9[:^ascii:]]+`)
	smallLarge  = regexp.MustCompile(`([a-z[:^ascii:]])([A-Z])`)
	largeCapped = regexp.MustCompile(`([A-Z])([A-Z][a-z[:^ascii:]])`)
	number      = regexp.MustCompile(`[0-9]+`)
)

func isSecret(name string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("[].", r) }), isSecretPart)
}

func isSecretPart(part string) bool {
	part = notInWord.ReplaceAllString(part, " ")
	part = smallLarge.ReplaceAllString(part, "$1 $2")
	part = largeCapped.ReplaceAllString(part, "$1 $2")
	part = number.ReplaceAllString(part, " $0 ")
	joined := ""
	for _, word := range strings.FieldsFunc(part, func(r rune) bool { return r == ' ' }) {
		if joined += lowerASCII(word); inName.MatchString(joined) {
			return true
		}
	}
	return endOfName.MatchString(joined) && !ordinary.MatchString(joined) || wholeName.MatchString(joined)
}

func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// Bounds of a key's text and of its encoded form in a StatsD line.
const (
	maxText    = 512
	maxEncoded = 1024
	suffix     = 1 + 32
)

// shorten cuts a long text: first to maxText bytes, then to the length whose encoded form fits a
// line.
func shorten(text string) string {
	if len(text) > maxText {
		text = cut(text, maxText-suffix)
	}
	size, end := 0, 0
	for i := range len(text) {
		if c := text[i]; c > ' ' && c < 0x7f && !strings.ContainsRune(".:|@#,;[]%", rune(c)) {
			size++
		} else {
			size += 3
		}
		if size <= maxEncoded-suffix {
			end = i + 1
		}
	}
	if size > maxEncoded {
		text = cut(text, end)
	}
	return text
}

// cut returns at most n bytes of text, without a half %HH at the end, and the hash of the whole
// text.
func cut(text string, n int) string {
	if i := strings.LastIndexByte(text[:n], '%'); i >= 0 && i > n-3 {
		n = i
	}
	sum := sha256.Sum256([]byte(text))
	return text[:n] + "~" + hex.EncodeToString(sum[:16])
}
