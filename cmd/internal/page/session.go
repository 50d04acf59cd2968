package page

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	sessionCookie  = "hotparam_session"
	operatorCookie = "hotparam_operator"
	sessionLife    = 12 * time.Hour
)

// sessions are the sessions of browsers that have shown the token. A session is its end and a
// MAC over it, with a key derived from the token. So no aggregator has to store sessions, every
// replica with the same token accepts them, and a new token ends all of them. The cookie does
// not contain the token.
type sessions struct {
	cookie string // name of the cookie; a session of one is none of another
	key    []byte
}

func newSessions(cookie, token string) sessions {
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte("hotparam page session v1 " + cookie))
	return sessions{cookie, mac.Sum(nil)}
}

func (s *sessions) sign(end string) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(end))
	return hex.EncodeToString(mac.Sum(nil))
}

// startSession sets the cookie of a new session. Secure follows the scheme that a proxy reports: a
// client that lies about it only loses its own cookie.
func (s *sessions) startSession(w http.ResponseWriter, r *http.Request, now time.Time) {
	end := strconv.FormatInt(now.Add(sessionLife).Unix(), 10)
	setCookie(w, r, s.cookie, end+"."+s.sign(end), int(sessionLife/time.Second))
}

func setCookie(w http.ResponseWriter, r *http.Request, name, value string, maxAge int) {
	http.SetCookie(w, &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https"),
	})
}

// valid reports whether a request has a session that has not ended.
func (s *sessions) valid(r *http.Request, now time.Time) bool {
	cookie, err := r.Cookie(s.cookie)
	if err != nil {
		return false
	}
	end, mac, _ := strings.Cut(cookie.Value, ".")
	if !hmac.Equal([]byte(mac), []byte(s.sign(end))) {
		return false
	}
	unix, err := strconv.ParseInt(end, 10, 64)
	return err == nil && now.Before(time.Unix(unix, 0))
}

// session returns the token whose session a request has, or nil.
func (g *AccessGuard) session(r *http.Request, now time.Time) *accessToken {
	tokens := *g.tokens.Load()
	for i := range tokens {
		if tokens[i].valid(r, now) {
			return &tokens[i]
		}
	}
	return nil
}
