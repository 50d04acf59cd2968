package config

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
)

// methods are the usual methods of routes.
var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"}

// doubtfulRoute returns a message and a hint for a valid route that probably matches other
// requests than intended. The message is empty for all other routes.
func doubtfulRoute(r rules.Route) (message, hint string) {
	text := r.String()
	word, after, spaced := strings.Cut(text, " ")
	after = strings.TrimLeft(after, " ")
	upper := strings.ToUpper(word)
	switch {
	case r.IsAny() || r.IsZero():
	case r.Path() == "" && spaced && strings.HasPrefix(after, "/") && (word == "*" || strings.ContainsAny(word, ",|")):
		return "that is the name of a resource, and matches no HTTP request", fmt.Sprintf("write %q for all methods, or a rule for each", after)
	case r.Path() == "" && spaced && strings.HasPrefix(after, "/") && isLetters(word):
		return "that is the name of a resource, and matches no HTTP request: methods are in upper case", didYouMean(upper + " " + after)
	case r.Path() == "" && spaced && slices.Contains(methods, upper) && !strings.Contains(after, " "):
		return "that is the name of a resource, and matches no HTTP request: a path begins with a slash", didYouMean(upper + " /" + after)
	case r.Path() == "":
	case text != r.Path() && (word == "ANY" || word == "ALL"):
		return fmt.Sprintf("no request has the method %s", word), fmt.Sprintf("write %q for all methods", r.Path())
	case text != r.Path() && !slices.Contains(methods, word) && base.NearestWord(word, methods) != "":
		return fmt.Sprintf("the method %s is unusual", word), didYouMean(base.NearestWord(word, methods) + " " + r.Path())
	default:
		if ours, foreign := ownPattern(text); foreign != "" {
			literal := strings.NewReplacer(":", "%3A", "*", "%2A", "<", "%3C", ">", "%3E", "(", "%28").Replace(foreign)
			return fmt.Sprintf("%q is no wildcard here but text: the rule matches this very path alone", foreign),
				didYouMean(ours) + " The text itself is written " + literal
		}
	}
	return "", ""
}

func isLetters(s string) bool {
	return s != "" && strings.Trim(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz") == ""
}

// Wildcards of other routers, each a whole segment. The first group is the name, if there is
// one.
var (
	// :id of routers like chi and gin, with the suffixes that fiber allows.
	colonWildcard = regexp.MustCompile(`^:([\pL_][\pL\pN_-]*)(<.*>|\(.*\))?\??$`)
	// <id> and <int:id> of Flask, and {id:[0-9]+}, {id?} of chi, gorilla and ASP.NET.
	angleWildcard = regexp.MustCompile(`^<(?:[a-z]+:)?([\pL_][\pL\pN_]*)>$`)
	braceWildcard = regexp.MustCompile(`^\{([\pL_][\pL\pN_]*)(?::.*|\?)\}$`)
	// The rest of the path: *, **, *path, {*path}, <path:name>, and the usual regular expressions.
	restWildcard = regexp.MustCompile(`^(?:\*{1,2}([\pL_][\pL\pN_]*)?|\{\*{1,2}([\pL_][\pL\pN_]*)\}|<path:([\pL_][\pL\pN_]*)>|\(\.[*+]\)|\.[*+])$`)
)

// ownPattern returns a route with the wildcards of other routers in our spelling, and the
// first segment that had one. Both are "" if none had, or if the result is still not valid.
func ownPattern(route string) (ours, foreign string) {
	route = strings.TrimSpace(route)
	slash := strings.IndexByte(route, '/')
	if slash < 0 || slash > 0 && route[slash-1] != ' ' {
		return "", ""
	}
	parts := strings.Split(route[slash+1:], "/")
	taken := make(map[string]bool) // names of wildcards
	for _, part := range parts {
		taken[strings.Trim(part, "{.}")] = true
	}
	for i, part := range parts {
		if parts[i] = ownSegment(part, i == len(parts)-1, taken); parts[i] != part && foreign == "" {
			foreign = part
		}
	}
	ours = route[:slash+1] + strings.Join(parts, "/")
	if _, err := rules.ParseRoute(ours); err != nil {
		return "", ""
	}
	return ours, foreign
}

// ownSegment returns a segment in our spelling.
func ownSegment(part string, last bool, taken map[string]bool) string {
	if found := restWildcard.FindStringSubmatch(part); found != nil {
		name := strings.Join(found[1:], "") // one of the alternatives has the name
		switch {
		case last && name == "":
			return "" // a route that ends in a slash matches everything below
		case last:
			return newWildcard(name, "...", taken)
		}
		return newWildcard(cmp.Or(name, "any"), "", taken)
	}
	for _, form := range []*regexp.Regexp{colonWildcard, angleWildcard, braceWildcard} {
		if found := form.FindStringSubmatch(part); found != nil {
			return newWildcard(found[1], "", taken)
		}
	}
	if text, found := strings.CutSuffix(part, "*"); found && last && text != "" && !strings.ContainsAny(text, "*{}:<>()") {
		return text + "/"
	}
	return part
}

// newWildcard returns a wildcard whose name is not taken.
func newWildcard(name, dots string, taken map[string]bool) string {
	name = strings.ReplaceAll(name, "-", "_")
	for base, n := name, 2; taken[name]; n++ {
		name = base + strconv.Itoa(n)
	}
	taken[name] = true
	return "{" + name + dots + "}"
}
