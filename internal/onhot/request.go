package onhot

import (
	"net/http"
	"time"
)

// demand is the freshness that a request demands. Its zero value demands none.
type demand struct {
	maxAge   time.Duration // the largest age, if bounded
	minFresh time.Duration // the least time for which the answer stays fresh
	bounded  bool
}

// refuseRequest returns why the request is not for sharing, or ReasonNone and the freshness that
// it demands.
func (p *Policy) refuseRequest(r *http.Request) (Reason, demand) {
	h := r.Header
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return ReasonMethod, demand{}
	case r.ContentLength != 0 || len(r.TransferEncoding) > 0:
		return ReasonBody, demand{}
	case has(h, "Authorization") || has(h, "Proxy-Authorization") || r.URL.User != nil:
		return ReasonAuthorization, demand{}
	case r.TLS != nil && len(r.TLS.PeerCertificates) > 0:
		return ReasonCertificate, demand{}
	case has(h, "Cookie") && len(p.cookies) == 0:
		return ReasonCookie, demand{}
	case has(h, "Range"):
		return ReasonRange, demand{}
	case has(h, "Upgrade"):
		return ReasonUpgrade, demand{}
	case has(h, "If-Match") || has(h, "If-Unmodified-Since"):
		return ReasonCondition, demand{}
	case !has(h, "Cache-Control"):
		if has(h, "Pragma") {
			return ReasonRequestNoCache, demand{}
		}
		return ReasonNone, demand{}
	}
	d := parseDirectives(h["Cache-Control"])
	switch {
	case d.noStore:
		return ReasonRequestNoStore, demand{}
	case d.noCache:
		return ReasonRequestNoCache, demand{}
	}
	return ReasonNone, demand{max(0, d.maxAge), max(0, d.minFresh), d.maxAge >= 0}
}

// Refuses returns why no answer to the request is for sharing, or ReasonNone.
func (p *Policy) Refuses(r *http.Request) Reason {
	reason, _ := p.refuseRequest(r)
	if reason == ReasonNone {
		if _, short := p.key(r, ""); !short {
			return ReasonLong
		}
	}
	return reason
}

// has reports whether the header is present, even with an empty value.
func has(h http.Header, name string) bool { return len(h[name]) > 0 }
