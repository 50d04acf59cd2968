package hotparam

import "strings"

// defaultSecrets are the names of parameters that never leave the process.
var defaultSecrets = []string{
	"password", "passwd", "token", "access_token", "api_key", "apikey",
	"secret", "signature", "session", "authorization",
}

// Secrets tells which parameters look secret. Such a parameter is left out of
// every key that is counted, so neither its name nor its value is sent,
// published or logged. Names are compared without regard to case, "-" and "_";
// of a structured name ("user[password]", "user.password") each part counts.
// The zero value holds the default names. A Secrets is safe for concurrent use.
type Secrets struct {
	set map[string]bool // folded names; nil: the default
}

// NewSecrets holds the default names and those of extra, but none of except.
func NewSecrets(extra, except []string) Secrets {
	set := foldSet(defaultSecrets)
	for _, name := range extra {
		set[fold(name)] = true
	}
	for _, name := range except {
		delete(set, fold(name))
	}
	return Secrets{set: set}
}

var defaultSecretSet = foldSet(defaultSecrets)

func foldSet(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[fold(name)] = true
	}
	return set
}

// maxSecret is the longest folded name that is looked up; a longer one is
// folded part by part all the same, and cannot be in the set.
const maxSecret = 64

// Hides tells whether the parameter of this decoded name looks secret. It does
// not allocate.
func (s Secrets) Hides(name string) bool {
	set := s.set
	if set == nil {
		set = defaultSecretSet
	}
	var buf [maxSecret]byte
	folded := buf[:0]
	for i := range len(name) {
		c := name[i]
		switch {
		case c == '-' || c == '_':
			continue
		case c == '[' || c == ']' || c == '.':
			if set[string(folded)] {
				return true
			}
			folded = folded[:0]
			continue
		case 'A' <= c && c <= 'Z':
			c |= 0x20
		}
		if len(folded) < maxSecret {
			folded = append(folded, c)
		}
	}
	return set[string(folded)]
}

func fold(name string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(name))
}
