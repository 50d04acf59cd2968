package wire

import "bytes"

// OriginKind is the kind of name in an [OriginLine].
type OriginKind byte

// Kinds of origin.
const (
	Route  OriginKind = 'r' // the route of the requests
	Caller OriginKind = 'c' // the client that sent them
)

// originMarker separates the prefix from the key of an origin line.
const originMarker = ".hot_origin."

// MaxOrigin is the maximum length of an origin's name, in bytes. A longer name is cut.
const MaxOrigin = 128

// OriginLine states that about N of a key's counts have the same route or caller, or carries a
// [Usage]. The former are sent only for hot keys. The bytes of a parsed OriginLine are views into the line.
type OriginLine struct {
	Prefix []byte
	Key    []byte // encoded
	Kind   OriginKind
	Name   []byte
	N      int64
}

// AppendOrigin appends an origin line without a newline, the key's text encoded
// by e:
//
//	shop.search.hot_origin.GET%20/search?q=phone:12|c|#c:10%2E0%2E0%2E7
//
// Its name has another marker than a count's, so no reader mistakes it for one.
func AppendOrigin(dst []byte, e Encoding, prefix string, text []byte, o OriginLine) []byte {
	dst = append(append(dst, prefix...), originMarker...)
	dst = AppendCount(e.Append(dst, text), o.N, Account{})
	dst = append(dst, '|', '#', byte(o.Kind), ':')
	return Plain.Append(dst, o.Name[:min(len(o.Name), MaxOrigin)])
}

// IsOrigin reports whether a line looks like an origin line.
func IsOrigin(line []byte) bool { return bytes.Contains(line, []byte(originMarker)) }

// ParseOrigin reads an origin line. The name is still encoded, by [Plain].
func ParseOrigin(line []byte) (OriginLine, error) {
	prefix, tail, found := bytes.Cut(line, []byte(originMarker))
	if !found {
		return OriginLine{}, ErrForeign
	}
	key, tail, _ := bytes.Cut(tail, []byte{':'})
	value, tag, found := bytes.Cut(tail, []byte("|c|#"))
	n, ok := digits(value)
	if !found || !ok || n > MaxCount || len(prefix) == 0 || len(key) == 0 || len(tag) < 3 || len(tag) > 2+3*MaxOrigin || tag[1] != ':' {
		return OriginLine{}, ErrMalformed
	}
	kind := OriginKind(tag[0])
	if kind != Route && kind != Caller && kind != KeyUsage && kind != RouteUsage {
		return OriginLine{}, ErrMalformed
	}
	return OriginLine{Prefix: prefix, Key: key, Kind: kind, Name: tag[2:], N: n}, nil
}
