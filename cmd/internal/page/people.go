package page

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/hotparam/hotparam/internal/published"
)

// NamedToken is the secret of a person.
type NamedToken struct{ Name, Token string }

// Bounds of a file of tokens.
const (
	maxTokens = 100 // a login compares all of them
	minToken  = 16  // bytes
)

// ParseTokens parses a file of tokens: on each line a person's name, spaces, and the token. Empty
// lines and lines that begin with # are left out. An error never contains a token.
func ParseTokens(text []byte) (tokens []NamedToken, err error) {
	names, secrets := make(map[string]bool), make(map[string]bool)
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		switch {
		case len(fields) != 2:
			return nil, fmt.Errorf("line %d: want a name and a token, with a space between them", n)
		case !isPersonName(fields[0]):
			return nil, fmt.Errorf("line %d: the name may have letters, digits and . _ - @ +, 64 at most", n)
		case len(fields[1]) < minToken: // the name is not shown, since it may be the token
			return nil, fmt.Errorf("line %d: the token has %d bytes, want %d at least; make one by openssl rand -hex 32", n, len(fields[1]), minToken)
		case names[fields[0]]:
			return nil, fmt.Errorf("line %d: an earlier line has the same name", n)
		case secrets[fields[1]]:
			return nil, fmt.Errorf("line %d: an earlier line has the same token", n)
		case len(tokens) == maxTokens:
			return nil, fmt.Errorf("line %d: more than %d tokens", n, maxTokens)
		}
		names[fields[0]], secrets[fields[1]] = true, true
		tokens = append(tokens, NamedToken{fields[0], fields[1]})
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(tokens) == 0 {
		return nil, errors.New("no tokens: want a line for each person, NAME TOKEN; make a token by openssl rand -hex 32")
	}
	return tokens, nil
}

func isPersonName(s string) bool {
	return len(s) <= 64 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@+") == ""
}

// authorKey is the key of a request's context for its author: a person's name or the subject of a
// certificate.
type authorKey struct{}

// authorOf returns who sent a request that a guard let pass. It is empty if the guard does not
// know.
func authorOf(r *http.Request) string {
	author, _ := r.Context().Value(authorKey{}).(string)
	return author
}

// subjectOf returns the subject of the client's verified certificate.
func subjectOf(r *http.Request) string {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return ""
	}
	subject := strings.ToValidUTF8(r.TLS.VerifiedChains[0][0].Subject.String(), "")
	return strings.ToValidUTF8(subject[:min(len(subject), published.MaxControlBy)], "")
}
