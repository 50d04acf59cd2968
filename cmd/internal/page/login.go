package page

import (
	"io/fs"
	"net/http"
	"time"
)

// maxForm is the largest size of the login form.
const maxForm = 8 << 10

// Login returns the handler of /login and /logout: a form for the token, and its POST. Without a
// token there is no login, and the handler redirects to the page.
func (g *AccessGuard) Login() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /login", func(w http.ResponseWriter, r *http.Request) {
		if !g.HasToken() || g.session(r, time.Now()) != nil {
			http.Redirect(w, r, "/", http.StatusSeeOther)
			return
		}
		g.loginForm(w, http.StatusOK, "")
	})
	mux.Handle("POST /login", g.sameSite.Handler(http.HandlerFunc(g.login)))
	mux.Handle("POST /logout", g.sameSite.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setCookie(w, r, g.cookie, "", -1)
		http.Redirect(w, r, "/login", http.StatusSeeOther)
	})))
	return g.checkHost(mux)
}

func (g *AccessGuard) login(w http.ResponseWriter, r *http.Request) {
	if !g.HasToken() {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		fail(w, r, http.StatusBadRequest, "the form cannot be read: send token=… as application/x-www-form-urlencoded")
		return
	}
	switch wait, token := g.attempt(r, r.PostForm.Get("token")); { // from the body, never from the URL
	case wait > 0:
		tooMany(w, wait)
		g.loginForm(w, http.StatusTooManyRequests, tooManyWords(wait))
	case token == nil:
		g.loginForm(w, http.StatusUnauthorized, "The token is wrong.")
	default:
		token.startSession(w, r, time.Now())
		http.Redirect(w, r, "/", http.StatusSeeOther)
	}
}

// Where the token of the form is from.
const (
	pageTokenHelp     = "What <code>aggregator.page_token_file</code> or <code>page_token_env</code> of the rules file names."
	operatorTokenHelp = "Yours, of the file that <code>hotparam operate --tokens</code> names."
)

// loginForm sends the form, below a message.
func (g *AccessGuard) loginForm(w http.ResponseWriter, status int, words string) {
	page, err := fs.ReadFile(static, "login.html")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(fillForm(page, words, g.tokenHelp)) // the client has gone
}
