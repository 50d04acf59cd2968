package middleware

import (
	"net/http"

	"github.com/hotparam/hotparam/rules"
)

// Sharer answers identical requests of hot keys together; see [WithSharer]. It is safe for
// concurrent use.
type Sharer interface {
	// ForRule returns what answers the requests of a rule with on_hot. It is called for each version
	// of the rules that is about to be in force. Only a rule that has not changed keeps its answers.
	ForRule(r *rules.Rule) (Sharing, error)
	// Invalidate drops the answers to a target, since a request that is neither GET nor HEAD has
	// succeeded there. path is escaped, and query is raw. It must be quick. It is called for paths
	// that the route of some rule with on_hot covers ([rules.Route.Covers]).
	Invalidate(host, path, query string)
}

// Sharing answers identical requests of the hot keys of one rule together.
type Sharing interface {
	// Share answers the request r of the hot key with this text ([rules.Key.String]), or says that
	// it has to be handled alone. It calls admit for each run of the handler for requests together,
	// in the goroutine of the caller, which lets the run past the key's limit or refuses it. With
	// refresh, an older answer is at hand, and the run does not wait for the limit. If the outcome
	// has an answer, its headers are in header. An answer is kept only if the rule's route covers the
	// path of r, since Invalidate reaches no others.
	Share(r *http.Request, key string, header http.Header, admit func(refresh bool) (http.Handler, bool)) Shared
}

// sharedRule is a rule whose hot keys' requests are answered together, in one version of the rules.
type sharedRule struct {
	*rules.Rule
	sharing   Sharing
	decisions *decisionCounts
}

// Shared is how a request was answered together with others.
type Shared struct {
	Outcome Outcome
	Status  int    // of the answer
	Body    []byte // must not be changed
	Reason  string // why the outcome is Alone, in one word
}

// Outcome is how a [Sharing] answered a request.
type Outcome uint8

// Outcomes.
const (
	Alone   Outcome = iota // not at all: the handler answers, if the limit admits the request
	Stored                 // by an answer in memory
	Joined                 // by the answer to an identical request under way
	Led                    // by the handler, whose answer serves others too
	Refused                // by the limit
	Left                   // not at all: the client has left

	outcomes
)

var outcomeNames = [outcomes]string{"alone", "stored", "joined", "led", "refused", "left"}

// String returns the outcome in one word, as metrics name it.
func (o Outcome) String() string { return outcomeNames[o] }

// answers reports whether the outcome has an answer.
func (o Outcome) answers() bool { return o == Stored || o == Joined || o == Led }

// sharesRequest reports whether a request may be answered together with others. One that is not
// HTTP may be if the rule names its resource.
func (r *sharedRule) sharesRequest(in *Request) bool {
	return in.Method != "" || in.Path != "" || r.Match.Route.String() == in.Pattern
}
