package exact

import (
	"cmp"
	"math"
	"regexp"
	"slices"
)

// stepsTogether returns the steps of all keys under a threshold that compares keys with each
// other. It goes pane by pane, and every decision falls at the end of a pane.
func (c *Counter) stepsTogether(t ThresholdSpec) (steps []step) {
	w, width := newSliding(c, t), NewWindow(t.D).Width
	hot := make(map[int]*hotTimes)
	for pane, ok := w.first(); ok && pane < c.last/width; pane, ok = w.next(len(hot) > 0) {
		end := (pane + 1) * width
		ranking := w.ranking(t)
		for _, key := range w.active {
			n := w.sums[key]
			if hot[key] != nil || n < t.N {
				continue
			}
			if need := w.needs(t, key, ranking); n >= need.Enter {
				hot[key] = newHotKey(end)
				steps = append(steps, step{key: w.keys[key], hot: true, instant: end, count: n, atPaneEnd: true, threshold: t.Name()})
			}
		}
		for key, m := range hot {
			n := w.sums[key]
			if m.coolsAt(t, end, n < w.needs(t, key, ranking).Exit) {
				delete(hot, key)
				steps = append(steps, step{key: w.keys[key], instant: end, count: n, atPaneEnd: true, threshold: t.Name()})
			}
		}
	}
	return steps
}

// sliding holds the counts of all keys in the window that ends with a pane.
type sliding struct {
	*paneCounts
	panes     int64
	head      int // index of the first cell after the window
	tail      int // index of the first cell in the window
	pane      int64
	sums      []int64 // window's sum for each key
	active    []int   // keys with a count, in no order
	groups    map[string]int64
	ungrouped int64 // sum of the keys without a group
	total     int64
}

// paneCounts holds the counts of all keys, pane by pane.
type paneCounts struct {
	keys  []string
	group []string    // group of each key; "" if its text was cut
	cells []paneCount // sorted by pane
}

// paneCount is the count of one key in one pane.
type paneCount struct {
	pane, n int64
	key     int
}

func newSliding(c *Counter, t ThresholdSpec) *sliding {
	w := NewWindow(t.D)
	l := c.cells[w.Width]
	if l == nil {
		l = c.countByPane(w.Width)
		c.cells[w.Width] = l
	}
	return &sliding{paneCounts: l, panes: w.Panes, groups: make(map[string]int64), sums: make([]int64, len(l.keys))}
}

func (c *Counter) countByPane(width int64) *paneCounts {
	l := new(paneCounts)
	for text, s := range c.keys {
		key := len(l.keys)
		l.keys = append(l.keys, text)
		l.group = append(l.group, group(text))
		for i, instant := range s.times {
			pane := instant / width
			if last := len(l.cells) - 1; last >= 0 && l.cells[last].key == key && l.cells[last].pane == pane {
				l.cells[last].n += s.counts[i]
			} else {
				l.cells = append(l.cells, paneCount{pane, s.counts[i], key})
			}
		}
	}
	slices.SortFunc(l.cells, func(a, b paneCount) int { return cmp.Compare(a.pane, b.pane) })
	return l
}

// first moves to the first pane that has a count.
func (w *sliding) first() (pane int64, ok bool) {
	if len(w.cells) == 0 {
		return 0, false
	}
	w.pane = w.cells[0].pane - 1
	return w.next(false)
}

// next moves to the next pane. If nothing can change without counts, it skips to the next pane
// that has one.
func (w *sliding) next(busy bool) (pane int64, ok bool) {
	switch w.pane++; {
	case busy || len(w.active) > 0:
	case w.head == len(w.cells):
		return 0, false
	default:
		w.pane = max(w.pane, w.cells[w.head].pane)
	}
	for ; w.head < len(w.cells) && w.cells[w.head].pane <= w.pane; w.head++ {
		x := w.cells[w.head]
		if w.sums[x.key] == 0 {
			w.active = append(w.active, x.key)
		}
		w.add(x.key, x.n)
	}
	for ; w.tail < w.head && w.cells[w.tail].pane <= w.pane-w.panes; w.tail++ {
		w.add(w.cells[w.tail].key, -w.cells[w.tail].n)
	}
	w.active = slices.DeleteFunc(w.active, func(key int) bool { return w.sums[key] == 0 })
	return w.pane, w.pane < math.MaxInt64
}

func (w *sliding) add(key int, n int64) {
	w.sums[key] += n
	w.total += n
	if g := w.group[key]; g == "" {
		w.ungrouped += n
	} else {
		w.groups[g] += n
	}
}

// ranking returns the counts of the keys with at least t.N, the highest first. It is nil unless t
// is a top.
func (w *sliding) ranking(t ThresholdSpec) (counts []int64) {
	if t.Kind != "top" {
		return nil
	}
	for _, key := range w.active {
		if w.sums[key] >= t.N {
			counts = append(counts, w.sums[key])
		}
	}
	slices.SortFunc(counts, func(a, b int64) int { return cmp.Compare(b, a) })
	return counts
}

// needs returns the needs of a key in the window.
func (w *sliding) needs(t ThresholdSpec, key int, ranking []int64) Needs {
	n := t.ownNeeds()
	if t.Kind == "share" {
		// A text that was too long ends in a hash, so the key may belong to any group.
		low, high := int64(0), w.total
		if g := w.group[key]; g != "" {
			low, high = w.groups[g], w.groups[g]+w.ungrouped
		}
		n.raise(t, low, high, Ratio{1, 1})
		return n
	}
	// The rival is the other key in the last place. A key is not ahead of an equal count.
	place := t.Top - 1
	if index, found := slices.BinarySearchFunc(ranking, w.sums[key], func(a, b int64) int { return cmp.Compare(b, a) }); found && index <= place {
		place++ // the key itself ranks before that place
	}
	if place < len(ranking) {
		rival := ranking[place]
		n.Enter = max(n.Enter, rival+1)
		n.Exit = max(n.Exit, ceil(rival, t.Exit))
	}
	return n
}

var (
	values   = regexp.MustCompile(`=[^&]*`)
	cutText  = regexp.MustCompile(`~[0-9a-f]{32}$`)
	keyParts = regexp.MustCompile(`^(.*\?)?([^?]*)$`)
)

// group returns the group whose total a key's share is taken from: the keys of the same route
// with the same parameter names. It returns "" for a key whose text was cut.
func group(text string) string {
	if cutText.MatchString(text) {
		return ""
	}
	m := keyParts.FindStringSubmatch(text)
	if m == nil || m[1] == "" {
		return "route " + text
	}
	return "keys " + m[1] + values.ReplaceAllString(m[2], "")
}
