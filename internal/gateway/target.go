package gateway

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/hotparam/hotparam/internal/hexdigit"
)

// target is the target of a request, parsed.
type target struct {
	path  string // escaped
	query string // raw, without "?"
	host  string // of an absolute URI, or of CONNECT
}

// parseTarget parses a target as net/http does for a server, and goes on where net/http would
// answer 400: the application behind the gateway may be less strict. With clean set the path
// is cleaned and a fragment is cut off.
func parseTarget(method, s string, clean bool) (t target) {
	if method == http.MethodConnect && !strings.HasPrefix(s, "/") {
		t.host = s
		return t
	}
	if clean {
		s, _, _ = strings.Cut(s, "#")
	}
	path, query, _ := strings.Cut(s, "?")
	t.query = query
	if !strings.HasPrefix(path, "/") {
		path, t.host = cutAuthority(path)
	}
	t.path = escapePath(path)
	if clean && t.path != "*" {
		t.path = CleanPath(t.path)
	}
	return t
}

// cutAuthority returns the path and the host of an absolute URI without its query. Anything
// else is a path.
func cutAuthority(s string) (path, host string) {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok || strings.Contains(scheme, "/") {
		return s, ""
	}
	host, path = rest, ""
	if slash := strings.IndexByte(rest, '/'); slash >= 0 {
		host, path = rest[:slash], rest[slash:]
	}
	return path, host[strings.LastIndexByte(host, '@')+1:]
}

// escapePath returns the path as [url.URL.EscapedPath] has it. Where a path has broken
// escapes, which package url refuses, a "%" stands for itself.
func escapePath(path string) string {
	if isEscaped(path) {
		return path
	}
	u := url.URL{RawPath: path}
	unescaped, err := url.PathUnescape(path)
	if err != nil {
		path = mendEscapes(path)
		u.RawPath = path
		if unescaped, err = url.PathUnescape(path); err != nil {
			return path
		}
	}
	u.Path = unescaped
	return u.EscapedPath()
}

// isEscaped reports whether EscapedPath would leave the path as it is.
func isEscaped(path string) bool {
	for i := 0; i < len(path); i++ {
		c := path[i]
		switch {
		case c == '%':
			if !isEscape(path[i:]) {
				return false
			}
			i += 2
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case strings.IndexByte("/-_.~!$&'()*+,;=:@[]", c) >= 0:
		default:
			return false
		}
	}
	return true
}

// isEscape reports whether s begins with "%" and two hexadecimal digits.
func isEscape(s string) bool {
	if len(s) < 3 || s[0] != '%' {
		return false
	}
	_, ok1 := hexdigit.Value(s[1])
	_, ok2 := hexdigit.Value(s[2])
	return ok1 && ok2
}

// mendEscapes writes each "%" that begins no escape as "%25".
func mendEscapes(path string) string {
	var b strings.Builder
	for i := range len(path) {
		if path[i] == '%' && !isEscape(path[i:]) {
			b.WriteString("%25")
			continue
		}
		b.WriteByte(path[i])
	}
	return b.String()
}
