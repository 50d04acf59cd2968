package base

// NearestWord returns the word of words that word was probably intended to be: the one with the
// smallest edit distance, if that is small for its length, else "".
func NearestWord(word string, words []string) string {
	best, least := "", 3
	for _, w := range words {
		limit := min(least, 2+len(w)/4)
		if d := EditDistance(word, w, limit); d < limit {
			best, least = w, d
		}
	}
	return best
}

// EditDistance returns the edit distance between a and b (optimal string alignment: insert,
// delete, replace, swap neighbours), or any number of at least limit.
func EditDistance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	older, old, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range old {
		old[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(old[j]+1, row[j-1]+1, old[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
		}
		older, old, row = old, row, older
	}
	return old[len(b)]
}
