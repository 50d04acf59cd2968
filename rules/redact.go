package rules

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"slices"
)

// Redact names parameters that make keys without their values. A key has "hmac-" and 32
// hexadecimal digits instead of the value: the first half of an HMAC-SHA256 (RFC 2104) under the
// fleet's secret key. So equal values of a parameter have equal keys on every instance, and a
// reader of a key learns nothing about the value. The input of the hash is the parameter as keys
// would write it, "header:x-api-key=abc", so the same value of another parameter has another
// text.
//
// A parameter is redacted if one of the names has its source, and the name of the parameter or of
// one of its parts as [Secrets] defines them. Names are compared without regard to ASCII case and
// to bytes that are neither letter nor digit. A parameter that looks secret makes keys if it is
// redacted.
type Redact struct {
	Names []Param // sources and names, without values
	// Key is the secret, at least MinRedactKey bytes and the same on every instance. It may be
	// nil if no keys are made, as in an aggregator.
	Key []byte
}

// MinRedactKey is the least length of the key of a [Redact], in bytes.
const MinRedactKey = 16

var errNoRedactKey = errors.New("secrets.redact needs a key: a file or a variable that redact_key_file or redact_key_env names; with package config call File.ReadRedactKey")

// Redaction is a [Redact] prepared for use. It is immutable. A nil Redaction redacts nothing.
type Redaction struct {
	names   []Param // names as given
	folded  []Param // the same with folded names
	sources uint    // bits of the names' sources
	key     []byte
}

// NewRedaction returns nil if r has no names, and an error if its key is missing or too short.
func NewRedaction(r Redact) (*Redaction, error) {
	switch {
	case len(r.Names) == 0:
		return nil, nil
	case len(r.Key) == 0:
		return nil, errNoRedactKey
	case len(r.Key) < MinRedactKey:
		return nil, fmt.Errorf("the key of secrets.redact has %d bytes, want %d at least; make one by openssl rand -hex 32", len(r.Key), MinRedactKey)
	}
	return newRedaction(r), nil
}

// newRedaction is like NewRedaction, but does not need a key.
func newRedaction(r Redact) *Redaction {
	x := &Redaction{names: slices.Clone(r.Names), key: slices.Clone(r.Key)}
	for _, p := range r.Names {
		x.sources |= 1 << p.Source
		if p.Name = fold(p.Name); p.Name != "" {
			x.folded = append(x.folded, p)
		}
	}
	return x
}

// MAC returns the keyed hash whose sum replaces a value.
func (x *Redaction) MAC() hash.Hash { return hmac.New(sha256.New, x.key) }

// KeyID identifies the key without revealing it. Instances with different keys count the same
// values under different keys.
func (x *Redaction) KeyID() string {
	if x == nil {
		return ""
	}
	mac := x.MAC()
	mac.Write([]byte("key id")) // not the text of a parameter, since it has no "="
	return hex.EncodeToString(mac.Sum(nil)[:4])
}

// Concerns reports whether some parameter of the source is redacted.
func (x *Redaction) Concerns(source Source) bool { return x != nil && x.sources&(1<<source) != 0 }

// Redacts reports whether the parameter with this source and decoded name is redacted. It does
// not allocate.
func (x *Redaction) Redacts(source Source, name string) bool {
	if !x.Concerns(source) {
		return false
	}
	for i := range x.names {
		if x.names[i].Source == source && x.names[i].Name == name {
			return true
		}
	}
	if x.hasPart(source, name) {
		return true
	}
	start := 0
	for i := range len(name) {
		if kinds[name[i]] == partEnd {
			if x.hasPart(source, name[start:i]) {
				return true
			}
			start = i + 1
		}
	}
	return start > 0 && x.hasPart(source, name[start:])
}

func (x *Redaction) hasPart(source Source, part string) bool {
	var buf [maxSecret]byte
	folded := appendFolded(buf[:0], part)
	for i := range x.folded {
		if x.folded[i].Source == source && x.folded[i].Name == string(folded) {
			return true
		}
	}
	return false
}

// makesNoKey reports whether the parameter looks secret and is not redacted.
func (r *Rules) makesNoKey(p Param) bool {
	return r.Secrets.Hides(p.Name) && !newRedaction(r.Redact).Redacts(p.Source, p.Name)
}

// validate reports errors of the names and of the key.
func (r *Redact) validate(secrets *Secrets) (bad FieldErrors) {
	for i, p := range r.Names {
		field := fmt.Sprintf("secrets.redact[%d]", i)
		switch message, hint := p.CheckName(); {
		case p.Name == "" || p.Value != "" || p.Source >= sources:
			bad.add(field, fmt.Sprintf("%+v", p), "for example header:x-api-key, cookie:session or q", "want a source and a name, without a value")
		case message != "":
			bad.add(field, quoted(p.FormatName()), hint, "%s", message)
		case slices.Contains(r.Names[:i], p):
			bad.add(field, quoted(p.FormatName()), "keep one of them", "the parameter is named twice")
		case secrets.exempts(p.Name):
			bad.add(field, quoted(p.FormatName()), "a name cannot be both in except and in redact: keep one of them", "secrets.except has the name too").needs("secrets.except")
		}
	}
	if len(r.Key) > 0 && len(r.Key) < MinRedactKey {
		bad.add("secrets.redact_key", "", "make one by openssl rand -hex 32", "the key has %d bytes, want %d at least", len(r.Key), MinRedactKey)
	}
	return bad
}

// validateRedacted reports settings of the rule that cannot work with redacted values. The
// aggregator does not know the values, so it cannot compare them with values of the file, nor
// addresses with their networks.
func (r *Rule) validateRedacted(bad *FieldErrors, x *Redaction) {
	named := slices.ContainsFunc(r.Except, x.redactsOf)
	for i := range r.Except {
		if named && !r.Except[i].Rate.IsZero() {
			bad.add(fmt.Sprintf("except[%d].hot", i), quoted(r.Except[i].Rate.String()), "give the values a rule of their own, by match, or an exception with limit, action: allow or action: block",
				"an exception of the rule names a redacted parameter, whose values the aggregator does not know, so it cannot know which keys have another threshold")
		}
	}
	levels, first := 0, -1
	for i, p := range r.By.Names {
		if p.Source != Addr {
			continue
		}
		if levels++; first < 0 && x.Redacts(p.Source, p.Name) {
			first = i
		}
	}
	if r.By.Kind == ByCombinations && levels > 1 && first >= 0 {
		bad.add(fmt.Sprintf("by[%d]", first), quoted(r.By.Names[first].FormatName()), "redact none of them, or write a rule for each",
			"the level is redacted, so the aggregator cannot know the networks of an address at other levels")
	}
}

// OfKeys returns the rules for programs that see keys but no requests. It omits the exceptions
// that name redacted parameters, since a pattern for their values could match the text that
// replaces them.
func (r *Rules) OfKeys() *Rules {
	if r == nil || len(r.Redact.Names) == 0 {
		return r
	}
	x, all := newRedaction(r.Redact), *r
	all.Rules = slices.Clone(r.Rules)
	for i := range all.Rules {
		all.Rules[i].Except = slices.DeleteFunc(slices.Clone(all.Rules[i].Except), x.redactsOf)
	}
	return &all
}

// redactsOf reports whether the exception names a redacted parameter.
func (x *Redaction) redactsOf(e Exception) bool {
	return slices.ContainsFunc(e.Values, func(v QueryMatch) bool {
		p := v.Param()
		return x.Redacts(p.Source, p.Name)
	})
}
