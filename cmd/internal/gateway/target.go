package gateway

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/hotparam/hotparam/internal/base"
)

// target is a parsed request target.
type target struct {
	path  string // escaped
	query string // raw, without "?"
	host  string // host of an absolute URI or of CONNECT; otherwise empty
}

// parseTarget parses a request target as a net/http server does. It accepts targets that net/http
// would answer with 400, because the application behind the gateway may be less strict. If clean
// is set, it cleans the path and drops a fragment.
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

// cutAuthority returns the path and the host of an absolute URI that has no query. It returns any
// other string as the path.
func cutAuthority(s string) (path, host string) {
	scheme, tail, ok := strings.Cut(s, "://")
	if !ok || strings.Contains(scheme, "/") {
		return s, ""
	}
	host, path = tail, ""
	if slash := strings.IndexByte(tail, '/'); slash >= 0 {
		host, path = tail[:slash], tail[slash:]
	}
	return path, host[strings.LastIndexByte(host, '@')+1:]
}

// escapePath returns the path as [url.URL.EscapedPath] does. In a path with invalid escapes,
// which package url rejects, a "%" stands for itself.
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

// isEscaped reports whether EscapedPath would return path unchanged.
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
	_, ok1 := base.HexDigit(s[1])
	_, ok2 := base.HexDigit(s[2])
	return ok1 && ok2
}

// mendEscapes returns path with "%25" for each "%" that does not begin an escape.
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
