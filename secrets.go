package hotparam

// defaultSecrets are the names of parameters that never leave the process.
var defaultSecrets = []string{
	"password", "passwd", "token", "access_token", "api_key", "apikey",
	"secret", "signature", "session", "authorization",
}

// Secrets tells which parameters look secret. Such a parameter is left out of
// every key that is counted, so neither its name nor its value is sent,
// published or logged. Names are compared without regard to ASCII case, "-" and
// "_", by their first 64 bytes;
// of a structured name ("user[password]", "user.password") each part counts.
// The zero value holds the default names. A Secrets is safe for concurrent use.
type Secrets struct {
	set *secretSet // nil: the default names
}

// secretSet holds folded names, and for each first byte the last letters, as bits,
// that a name can have whose folded form is in the set: enough to pass most names
// without a look-up.
type secretSet struct {
	names map[string]bool
	ends  [256]uint32
}

// anyLetter stands for what a byte that is no letter may hide: a name with it is
// looked up.
const anyLetter = 1<<32 - 1

// lastLetter is the bit of a name's last byte.
var lastLetter = func() (bits [256]uint32) {
	for c := range bits {
		bits[c] = anyLetter
		if i := letter(byte(c)); i >= 0 {
			bits[c] = 1 << i
		}
	}
	return bits
}()

var defaultSecretSet = newSecretSet(defaultSecrets, nil)

// NewSecrets holds the default names and those of extra, but none of except.
func NewSecrets(extra, except []string) Secrets {
	return Secrets{set: newSecretSet(append(extra[:len(extra):len(extra)], defaultSecrets...), except)}
}

func newSecretSet(names, except []string) *secretSet {
	set := &secretSet{names: make(map[string]bool, len(names))}
	for _, name := range names {
		set.names[fold(name)] = true
	}
	for _, name := range except {
		delete(set.names, fold(name))
	}
	delete(set.names, "")
	for c := range set.ends {
		if letter(byte(c)) < 0 {
			set.ends[c] = anyLetter
		}
	}
	for name := range set.names {
		first, last := letter(name[0]), letter(name[len(name)-1])
		if first < 0 || last < 0 || len(name) == maxSecret { // rare: then every name is looked up
			for c := range set.ends {
				set.ends[c] = anyLetter
			}
			break
		}
		set.ends['a'+first] |= 1 << last
		set.ends['A'+first] |= 1 << last
	}
	return set
}

func letter(c byte) int {
	if c |= 0x20; 'a' <= c && c <= 'z' {
		return int(c - 'a')
	}
	return -1
}

// maxSecret is how many bytes of a folded name are compared.
const maxSecret = 64

// Hides tells whether the parameter of this decoded name looks secret. It does
// not allocate.
func (s *Secrets) Hides(name string) bool {
	set := s.set
	if set == nil {
		set = defaultSecretSet
	}
	if name == "" {
		return false
	}
	// Most names cannot be secret: no parts, and letters at both ends that no
	// secret has.
	if set.ends[name[0]]&lastLetter[name[len(name)-1]] != 0 {
		return set.holds(name)
	}
	for i := range len(name) {
		if c := name[i]; c == '[' || c == ']' || c == '.' {
			return set.holds(name)
		}
	}
	return false
}

func (set *secretSet) holds(name string) bool {
	var buf [maxSecret]byte
	part := buf[:0]
	for i := range len(name) {
		c := name[i]
		if c == '[' || c == ']' || c == '.' {
			if set.names[string(part)] {
				return true
			}
			part = part[:0]
			continue
		}
		part = appendFolded(part, c)
	}
	return set.names[string(part)]
}

func fold(name string) string {
	var folded []byte
	for i := range len(name) {
		folded = appendFolded(folded, name[i])
	}
	return string(folded)
}

// appendFolded folds the case of ASCII letters alone: that of others would cost
// an allocation per name.
func appendFolded(part []byte, c byte) []byte {
	switch {
	case c == '-' || c == '_' || len(part) == maxSecret:
		return part
	case 'A' <= c && c <= 'Z':
		c |= 0x20
	}
	return append(part, c)
}
