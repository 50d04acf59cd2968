package onhot

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/rules"
)

func TestRequestsThatAreNotShared(t *testing.T) {
	for _, c := range []struct {
		method  string
		headers string // separated by |
		want    Reason
	}{
		{"GET", "", ReasonNone},
		{"HEAD", "", ReasonNone},
		{"GET", "If-None-Match|\"1\"|If-Modified-Since|x|X-Api-Key|k|Pragma-X|1", ReasonNone},
		{"GET", "Cache-Control|max-age=0", ReasonNone},
		{"GET", "Cache-Control|max-age=0|Pragma|no-cache", ReasonNone}, // Pragma counts only alone
		{"POST", "", ReasonMethod},
		{"OPTIONS", "", ReasonMethod},
		{"get", "", ReasonMethod},
		{"GET", "Authorization|Basic x", ReasonAuthorization},
		{"GET", "Authorization|", ReasonAuthorization},
		{"GET", "Proxy-Authorization|x", ReasonAuthorization},
		{"GET", "Cookie|sid=1", ReasonCookie},
		{"GET", "Range|bytes=0-1", ReasonRange},
		{"GET", "Connection|Upgrade|Upgrade|websocket", ReasonUpgrade},
		{"GET", "If-Match|\"1\"", ReasonCondition},
		{"GET", "If-Unmodified-Since|x", ReasonCondition},
		{"GET", "Cache-Control|no-cache", ReasonRequestNoCache},
		{"GET", "Pragma|no-cache", ReasonRequestNoCache},
		{"GET", "Cache-Control|no-store", ReasonRequestNoStore},
		{"GET", "Cache-Control|x=\"", ReasonRequestNoStore},
	} {
		var headers []string
		if c.headers != "" {
			headers = strings.Split(c.headers, "|")
		}
		p := NewPolicy(hour)
		if got, _ := p.refuseRequest(newRequest(c.method, "/", headers...)); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.method, c.headers, got, c.want)
		}
	}
	p := NewPolicy(hour)
	body := httptest.NewRequest("GET", "/", strings.NewReader("x"))
	chunked := httptest.NewRequest("GET", "/", nil)
	chunked.ContentLength = -1
	user := newRequest("GET", "http://ann:x@example.com/")
	certificate := newRequest("GET", "https://example.com/")
	certificate.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{}}}
	for r, want := range map[*http.Request]Reason{body: ReasonBody, chunked: ReasonBody, user: ReasonAuthorization, certificate: ReasonCertificate, newRequest("GET", "https://example.com/"): ReasonNone} {
		if got, _ := p.refuseRequest(r); got != want {
			t.Errorf("%s: %q, want %q", r.URL, got, want)
		}
	}
	for vary, want := range map[string]Reason{"cookie:lang": ReasonNone, "header:x": ReasonCookie} {
		p := NewPolicy(rules.OnHot{Cache: time.Second, Vary: []string{vary}})
		if got, _ := p.refuseRequest(newRequest("GET", "/", "Cookie", "sid=1")); got != want {
			t.Errorf("vary %s: %q, want %q", vary, got, want)
		}
	}
	if _, ok := p.key(newRequest("GET", "/?q="+strings.Repeat("x", maxKey)), "t"); ok {
		t.Error("a key may have any length")
	}
}

func TestAcceptedCodings(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "",
		"gzip":                                "gzip",
		"x-gzip":                              "gzip",
		"GZIP;q=1.0, br":                      "gzip, br",
		"br, gzip":                            "gzip, br",
		"gzip, deflate, br, zstd":             "gzip, br, zstd, deflate",
		"gzip;q=0, br; q=0.000, zstd;q=0.001": "zstd",
		"gzip ; Q = 0":                        "",
		"identity, *":                         "",
		"compress, sdch":                      "",
		"gzip|br":                             "",
	} {
		if got := acceptedCodings([]string{text}); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := acceptedCodings([]string{"br", "gzip"}); got != "gzip, br" {
		t.Error(got)
	}
}

func TestNamedCookies(t *testing.T) {
	p := NewPolicy(rules.OnHot{Coalesce: true, Vary: []string{"cookie:lang"}})
	for text, want := range map[string]string{
		"":                            "",
		"a=b":                         "",
		"a=b;lang=en;\tlang=\"de\" ;": "lang=en; lang=\"de\"",
		"lang =en":                    "lang =en", // named lang to net/http
		"\u00a0lang=en":               "",         // not named lang
		"Lang=en; langs=en":           "",
	} {
		if got := p.namedCookies([]string{text}); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
