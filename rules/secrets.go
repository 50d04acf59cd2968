package rules

import (
	"maps"
	"slices"
	"strings"
)

// The words that make a name secret. Each is folded: in lower case, with nothing between its
// letters.
var (
	// secretWords hide a name if one of them ends a word of it. "password_confirmation" and
	// "passwordHash" are no less secret for the word after "password".
	secretWords = []string{
		"password", "passwords", "passwd", "passphrase", "passcode",
		"secret", "secrets", "credential", "credentials",
		"apikey", "apikeys", "privatekey", "accesskey", "creditcard",
	}
	// secretEndings hide a name that ends with one of them, or with one and a number. A name with
	// another word after them mostly describes the secret and does not hold it: "token_type",
	// "session_length", "signature_version".
	secretEndings = []string{
		"token", "tokenhint", "session", "sessionid", "sessionkey", "sessid", "signature", "authorization",
	}
	// secretNames hide a name only if one of them is the whole name. As words they are part of
	// too many others: "discount_code", "author", "sig_digits".
	secretNames = []string{"code", "auth", "sig", "pwd", "otp", "jwt"}
	// notSecret are ordinary words that have the ending of a secret.
	notSecret = []string{"possession", "obsession"}
)

// Secrets decides which parameters look secret, whatever their source. Such a parameter
// is left out of every key that is counted, so neither its name nor its value is sent,
// published or logged.
//
// Names are compared without regard to ASCII case and to ASCII bytes that are neither letter nor
// digit. Those bytes separate words, as does a capital after a small letter or after a number.
// Each part of a structured name ("user[password]", "user.password") is judged. A part is hidden
// if
//
//   - one of its words, together with those before it, ends with one of password,
//     passwd, passphrase, passcode, secret, credential, apikey, privatekey, accesskey,
//     creditcard, or with passwords, secrets, credentials, apikeys ("userpassword",
//     "password_confirmation", "X-Api-Key"), or
//   - the part itself, without a number after it, ends with one of token, tokenhint,
//     session, sessionid, sessionkey, sessid, signature, authorization ("id_token",
//     "PHPSESSID", but not "token_type"), or
//   - it is one of code, auth, sig, pwd, otp, jwt, or one of the extra names, which are compared
//     by their first 64 bytes.
//
// The zero value has the default names. A Secrets is safe for concurrent use.
type Secrets struct {
	custom *customSecrets // nil if no names were added or exempted
}

// customSecrets are the names that a user has added or exempted.
type customSecrets struct {
	extra, except map[string]bool // folded
	// raw holds the extra names that have no letter or digit, unchanged, since folding leaves
	// nothing.
	raw map[string]bool
	// lasts holds the bytes that a name in extra or raw ends with.
	lasts [256]bool
}

// NewSecrets returns the default names with those of extra added. Each name in except exempts a
// part of exactly that name.
func NewSecrets(extra, except []string) Secrets {
	custom := &customSecrets{extra: make(map[string]bool), except: make(map[string]bool), raw: make(map[string]bool)}
	for _, name := range except {
		if folded := fold(name); folded != "" {
			custom.except[folded] = true
		}
	}
	for _, name := range extra {
		switch folded := fold(name); {
		case name == "":
		case folded == "":
			custom.raw[name] = true
			custom.mayEndWith(name[len(name)-1])
		default:
			custom.extra[folded] = true
			custom.mayEndWith(folded[len(folded)-1])
			if len(folded) == maxSecret { // a name of the request may be longer
				for c := range custom.lasts {
					custom.lasts[c] = true
				}
			}
		}
	}
	return Secrets{custom: custom}
}

// Names returns the names that were added to the default ones and those that were exempted,
// sorted and in the form in which they are compared.
func (s *Secrets) Names() (extra, except []string) {
	if s.custom == nil {
		return nil, nil
	}
	extra = slices.Sorted(maps.Keys(s.custom.extra))
	return append(extra, slices.Sorted(maps.Keys(s.custom.raw))...), slices.Sorted(maps.Keys(s.custom.except))
}

// exempts reports whether a name, or one of its parts, was exempted.
func (s *Secrets) exempts(name string) bool {
	if s.custom == nil || len(s.custom.except) == 0 {
		return false
	}
	isPartEnd := func(c rune) bool { return c < 0x80 && kinds[c] == partEnd }
	return slices.ContainsFunc(append(strings.FieldsFunc(name, isPartEnd), name), func(part string) bool { return s.custom.except[fold(part)] })
}

func (s *customSecrets) mayEndWith(c byte) {
	s.lasts[c] = true
	if 'a' <= c && c <= 'z' {
		s.lasts[c-'a'+'A'] = true
	}
}

// Hides reports whether the parameter with this decoded name looks secret. It does not allocate.
func (s *Secrets) Hides(name string) bool {
	for i := 1; i < len(name); i++ {
		if kinds[name[i]] != lower && s.mayEnd(name, i) {
			return s.hidesAny(name)
		}
	}
	return len(name) > 0 && s.mayEnd(name, len(name)) && s.hidesAny(name)
}

// mayEnd reports whether a secret may end before end, by its last two letters. Most names are
// cleared by that, without a comparison with any word.
func (s *Secrets) mayEnd(name string, end int) bool {
	last := name[end-1]
	return end > 1 && secretEnds[last]&letterBits[name[end-2]] != 0 || s.custom != nil && s.custom.lasts[last]
}

// hidesAny reports whether one of the parts of a name is hidden.
func (s *Secrets) hidesAny(name string) bool {
	start := 0
	for i := range len(name) {
		if kinds[name[i]] == partEnd {
			if s.hidesPart(name[start:i]) {
				return true
			}
			start = i + 1
		}
	}
	return s.hidesPart(name[start:])
}

func (s *Secrets) hidesPart(part string) bool {
	if s.custom == nil {
		return looksSecret(part)
	}
	if s.custom.raw[part] {
		return true
	}
	var buf [maxSecret]byte
	folded := appendFolded(buf[:0], part)
	return (s.custom.extra[string(folded)] || looksSecret(part)) && !s.custom.except[string(folded)]
}

// looksSecret reports whether a part of a name is hidden by default.
func looksSecret(part string) bool {
	letters := 0 // end of the last letter
	for i := range len(part) {
		if kinds[part[i]] < lower {
			continue
		}
		letters = i + 1
		if endsWord(part, letters) && endsWithAny(part[:letters], secretWords) >= 0 {
			return true
		}
	}
	if letters == 0 {
		return false
	}
	if endsWithAny(part[:letters], secretEndings) >= 0 && endsWithAny(part[:letters], notSecret) < 0 {
		return true
	}
	start := endsWithAny(part[:letters], secretNames)
	return start >= 0 && isBlank(part[:start]) && isBlank(part[letters:])
}

// isBlank reports whether s holds neither letters nor digits.
func isBlank(s string) bool {
	for i := range len(s) {
		if kinds[s[i]] >= digit {
			return false
		}
	}
	return true
}

// endsWord reports whether a word of a part ends before end: at the part's end, before a byte
// that is no letter, or before a capital that begins another word.
func endsWord(part string, end int) bool {
	if end == len(part) || kinds[part[end]] < lower {
		return true
	}
	if kinds[part[end]] != upper {
		return false
	}
	return kinds[part[end-1]] == lower || end+1 < len(part) && kinds[part[end+1]] == lower // HTTPServer
}

// endsWithAny returns the start in s of the word that s ends with, or -1 if it ends with none. s
// ends with a letter.
func endsWithAny(s string, words []string) int {
	for _, word := range words {
		if start := endsWith(s, word); start >= 0 {
			return start
		}
	}
	return -1
}

// endsWith returns the start in s of the word that s ends with, ignoring separators, or -1 if it
// does not end with it.
func endsWith(s, word string) int {
	i := len(s)
	for j := len(word) - 1; j >= 0; j-- {
		for i--; i >= 0 && kinds[s[i]] == separator; i-- {
		}
		if i < 0 || s[i]|0x20 != word[j] { // word[j] is a letter, so no other byte folds to it
			return -1
		}
	}
	return i
}

// kind is the class of a byte in a name.
type kind uint8

const (
	separator kind = iota
	partEnd
	digit
	lower // and all bytes that are not ASCII
	upper
)

var kinds = func() (k [256]kind) {
	for c := range k {
		switch {
		case c == '[' || c == ']' || c == '.':
			k[c] = partEnd
		case '0' <= c && c <= '9':
			k[c] = digit
		case 'a' <= c && c <= 'z' || c >= 0x80:
			k[c] = lower
		case 'A' <= c && c <= 'Z':
			k[c] = upper
		}
	}
	return k
}()

// secretEnds holds, for the last letter of a default name, the bits of the letters before it.
var secretEnds = func() (ends [256]uint32) {
	for _, words := range [][]string{secretWords, secretEndings, secretNames} {
		for _, word := range words {
			last, before := word[len(word)-1], word[len(word)-2]
			ends[last] |= 1 << (before - 'a')
			ends[last-'a'+'A'] = ends[last]
		}
	}
	return ends
}()

// letterBits holds a bit for each letter. A separator has all bits, since any letter may stand
// before it.
var letterBits = func() (bits [256]uint32) {
	for c := range bits {
		switch letter := byte(c) | 0x20; {
		case 'a' <= letter && letter <= 'z':
			bits[c] = 1 << (letter - 'a')
		case kinds[c] == separator:
			bits[c] = 1<<32 - 1
		}
	}
	return bits
}()

// maxSecret is the number of bytes of a folded part that are compared with the user's names.
const maxSecret = 64

func fold(name string) string {
	var buf [maxSecret]byte
	return string(appendFolded(buf[:0], name))
}

// appendFolded appends a name's letters and digits, the ASCII letters in lower case. To fold
// other letters would cost an allocation for each name.
func appendFolded(dst []byte, name string) []byte {
	for i := 0; i < len(name) && len(dst) < maxSecret; i++ {
		c := name[i]
		switch kinds[c] {
		case separator, partEnd:
			continue
		case upper:
			c |= 0x20
		}
		dst = append(dst, c)
	}
	return dst
}
