package base

// TotalParams stands where a key has its parameters, in the text of the total that a
// rule with overlapping keys counts for each route: "GET /search?*", and "*" where
// keys have no route. It is what the counts of the route's keys are parts of. No
// parameter can spell it, for a "*" in one is escaped.
const TotalParams = "*"

// IsTotal reports whether a key's text is a total. It must be of a rule with
// overlapping keys: the texts of others may end in the path of a route alone.
func IsTotal(text []byte) bool {
	n := len(text)
	return n > 0 && text[n-1] == '*' && (n == 1 || text[n-2] == '?')
}
