package config

import (
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// plain returns the value for text of any form.
func plain(to *string, f form) fieldBinding {
	return as(to, f, func(d *decoder, n *fileNode, what string) string {
		s, _ := d.scalar(n, what)
		return s
	})
}

// word returns the value for non-empty text.
func word(to *string) fieldBinding { return as(to, schemaWord, (*decoder).word) }

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// variable returns the value for the name of an environment variable that holds a secret.
func variable(to *string) fieldBinding {
	return as(to, schemaWord, func(d *decoder, n *fileNode, what string) string {
		s := d.word(n, what)
		if s != "" && !variableName.MatchString(s) {
			d.report(n.pos, "the name of a variable, not its value: for example REDIS_PASSWORD", "%s is no name of a variable", what)
		}
		return s
	})
}

// written returns the value for text that valid accepts. pattern describes it to editors.
func written(to *string, pattern, hint, want string, valid func(string) bool) fieldBinding {
	return as(to, schemaForm(pattern), func(d *decoder, n *fileNode, what string) string {
		s, ok := d.scalar(n, what)
		if ok && !valid(s) {
			d.reject(n, hint, "%s %s: want %s", what, quote(s), want)
		}
		return s
	})
}

// unshownURL returns the value for a URL that check accepts. Messages do not show the URL: it may be
// a secret, or hold a password in a form that is not recognized.
func unshownURL(to *string, f form, hint string, check func(string) error) fieldBinding {
	return as(to, f, func(d *decoder, n *fileNode, what string) string {
		s, ok := d.scalar(n, what)
		if ok {
			if err := check(s); err != nil {
				d.reject(n, hint, "%s: %v", what, err)
			}
		}
		return s
	})
}

// address returns the value for host:port, with or without a host.
func address(to *string, example string) fieldBinding {
	return written(to, `:[0-9]+$`, "for example "+example, "host:port", isHostPort)
}

func isHostPort(s string) bool {
	_, port, err := net.SplitHostPort(s)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	return err == nil
}

// choice returns the value for one of a few words.
func choice[T ~string](to *T, words ...T) fieldBinding {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = string(w)
	}
	return as(to, schemaChoice(texts...), func(d *decoder, n *fileNode, what string) T {
		s, _ := d.choice(n, what, texts...)
		return T(s)
	})
}

// enum returns the value for one of a few words, which name the values of T from 0 on. Any other
// word becomes otherwise.
func enum[T ~uint8](to *T, otherwise T, words ...string) fieldBinding {
	return as(to, schemaChoice(words...), func(d *decoder, n *fileNode, what string) T {
		if s, ok := d.choice(n, what, words...); ok {
			return T(slices.Index(words, s))
		}
		return otherwise
	})
}

// wordsUpTo returns the words of the values of T from 0 to last.
func wordsUpTo[T interface {
	~uint8
	String() string
}](last T) (words []string) {
	for v := range last + 1 {
		words = append(words, v.String())
	}
	return words
}

// isWord returns the value for a choice among words. It sets to to true if the word is trueWord.
func isWord(to *bool, trueWord string, words ...string) fieldBinding {
	return as(to, schemaChoice(words...), func(d *decoder, n *fileNode, what string) bool {
		s, _ := d.choice(n, what, words...)
		return s == trueWord
	})
}

// flag returns the value for true or false.
func flag(to *bool) fieldBinding { return as(to, schemaFlag, (*decoder).flag) }

func (d *decoder) flag(n *fileNode, what string) bool {
	s, _ := d.choice(n, what, "true", "false")
	return s == "true"
}

// milli returns the value for a time of at least a millisecond. A shorter one becomes invalid.
func milli(to *time.Duration, example string) fieldBinding {
	return as(to, schemaDuration, func(d *decoder, n *fileNode, what string) time.Duration {
		t := d.duration(n, what, "for example "+example, 0)
		if t < time.Millisecond && !n.bad {
			return invalid
		}
		return t
	})
}

// positive returns the value for a whole number of at least 1. A bad one becomes invalid. Package
// rules checks that it is at most limit.
func positive(to *int, limit int64) fieldBinding {
	return as(to, schemaWhole(1, limit), (*decoder).positive)
}

func (d *decoder) positive(n *fileNode, what string) int {
	s, ok := d.scalar(n, what)
	if !ok {
		return 0
	}
	return wholeNumber(s)
}

// span returns the value for a time within bounds.
func span(to *time.Duration, example string, least, greatest time.Duration) fieldBinding {
	return as(to, schemaDuration, func(d *decoder, n *fileNode, what string) time.Duration {
		t := d.duration(n, what, "for example "+example, least)
		want := fmt.Sprintf("%v to %v", least, greatest)
		if least == 0 {
			want = fmt.Sprintf("at most %v", greatest)
		}
		if t < least || t > greatest {
			d.reject(n, "for example "+example, "%s %s: want %s", what, quote(n.text), want)
		}
		return t
	})
}

// size returns the value for a number of bytes, in mebibytes or more.
func size(to *int64, hint string, least int64) fieldBinding {
	return byteCount(to, hint, fmt.Sprintf("a size of at least %dMiB, for example 64MB or 256MiB", least>>20), least)
}

// byteCount returns the value for a number of bytes.
func byteCount(to *int64, hint, want string, least int64) fieldBinding {
	return as(to, schemaSize, func(d *decoder, n *fileNode, what string) int64 {
		s, ok := d.scalar(n, what)
		bytes, valid := ParseBytes(s)
		if ok && (!valid || bytes < least) {
			d.reject(n, hint, "%s %s: want %s", what, quote(s), want)
		}
		return bytes
	})
}

// number returns the value for a whole number of at least 1, whose digits may be separated by _.
// none is the word for no bound, or "" if there must be a bound.
func number[T int | int64](to *T, hint, none string, limit int64) fieldBinding {
	pattern, want := `^\s*[+]?[0-9_]+\s*$`, fmt.Sprintf("1 to %d", limit)
	if none != "" {
		pattern = `^(\s*[+]?[0-9_]+\s*|` + none + `)$`
		want += ", or " + none
	}
	f := func() schema {
		s := schemaWhole(1, limit)()
		s["pattern"] = pattern
		return s
	}
	return as(to, f, func(d *decoder, n *fileNode, what string) T {
		text, ok := d.scalar(n, what)
		if ok && none != "" && text == none {
			return NoCap
		}
		i, err := strconv.ParseInt(strings.ReplaceAll(strings.TrimSpace(text), "_", ""), 10, 64)
		if ok && (err != nil || i < 1 || i > limit) {
			d.reject(n, hint, "%s %s: want %s", what, quote(text), want)
			return 0
		}
		return T(i)
	})
}

// networks returns the value for a list of networks and single addresses. Items that equal one
// of words are skipped.
func networks(to *[]netip.Prefix, words ...string) fieldBinding {
	pattern := `[.:]`
	for _, w := range words {
		pattern += "|^" + w + "$"
	}
	return as(to, schemaSome(schemaForm(pattern)), func(d *decoder, n *fileNode, what string) []netip.Prefix {
		return d.prefixes(n, what, words...)
	})
}

// maxPrefixes bounds the list, since each packet is compared with all of it.
const maxPrefixes = 256

func (d *decoder) prefixes(n *fileNode, what string, words ...string) (all []netip.Prefix) {
	const example = "for example [10.0.0.0/8, 192.0.2.7, 2001:db8::/32]"
	for _, item := range d.some(n, what, example, maxPrefixes, "networks") {
		s, ok := d.scalar(item, what)
		if !ok || slices.Contains(words, s) {
			continue
		}
		p, err := netip.ParsePrefix(s)
		if a, bad := netip.ParseAddr(s); bad == nil && a.Zone() == "" {
			a = a.Unmap()
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		switch {
		case err != nil:
			d.reject(item, example, "%s %s: want a network in CIDR notation, or an address", what, quote(s))
		case p.Addr().Is4In6():
			d.reject(item, "write it as IPv4: IPv4 addresses are compared as IPv4, however they are written in a request", "%s %s: is IPv4 written as IPv6", what, quote(s))
		case p != p.Masked():
			d.reject(item, fmt.Sprintf("did you mean %v?", p.Masked()), "%s %s: has bits behind its prefix", what, quote(s))
		default:
			all = append(all, p)
		}
	}
	return all
}
