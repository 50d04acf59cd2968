package hotparam

// Total stands where a key has its parameters, in the text of the total that a
// rule with [Rule.Overlaps] counts for each route: "GET /search?*", and "*" where
// keys have no route. It is what the counts of the route's keys are parts of. No
// parameter can spell it, for a "*" in one is escaped.
const Total = "*"

// IsTotal reports whether a key's text is a total. It must be of a rule with
// [Rule.Overlaps]: the texts of others may end in the path of a route alone.
func IsTotal(text []byte) bool {
	n := len(text)
	return n > 0 && text[n-1] == '*' && (n == 1 || text[n-2] == '?')
}

// Overlaps reports whether the rule finds hot keys of which a request makes
// several, so that one request counts for all of them.
func (r *Rule) Overlaps() bool {
	return len(r.Hot) > 0 && (r.By.Kind == ByEach || r.By.Kind == ByCombinations)
}
