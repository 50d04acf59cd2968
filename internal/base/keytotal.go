package base

// TotalParams replaces a key's parameters in the text of the total that a rule with overlapping
// keys counts for each route: "GET /search?*", and "*" where keys have no route. The counts of
// the route's keys are parts of the total. No parameter can spell it, since a "*" in one is
// escaped.
const TotalParams = "*"

// IsTotal reports whether a key's text is a total. The key must belong to a rule with
// overlapping keys, since other texts may end in the path of a route alone.
func IsTotal(text []byte) bool {
	n := len(text)
	return n > 0 && text[n-1] == '*' && (n == 1 || text[n-2] == '?')
}
