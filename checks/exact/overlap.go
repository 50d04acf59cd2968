package exact

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Overlap checks a detector's list of a route's hot keys against the requests themselves, where a
// request makes several keys. The list states which keys are limited, usual or spared. Overlap
// keeps each request's parameters and computes sums on demand.
type Overlap struct {
	N     int64 // the threshold: the count within Panes
	Panes int64
	Each  bool // one key per parameter; otherwise combinations

	panes map[int64]map[string]int64 // pane → sorted parameters joined by "&" → requests
	keys  map[int64]map[string]int64 // pane → key → requests; the key "" counts all
	sets  map[string]map[string]bool // the parameters of each request
	parts map[string][]string        // the parameters of each key
	was   map[string]Listing
	since map[string]int64 // first pane at whose end the key was listed
}

// Listing is how a detector lists a key.
type Listing struct{ Usual, Spared bool }

// Add counts n requests with the given parameters, which are sorted.
func (o *Overlap) Add(pane, n int64, params ...string) {
	if o.panes == nil {
		o.panes, o.keys = make(map[int64]map[string]int64), make(map[int64]map[string]int64)
		o.parts = make(map[string][]string)
		o.was, o.since, o.sets = make(map[string]Listing), make(map[string]int64), make(map[string]map[string]bool)
	}
	if o.panes[pane] == nil {
		o.panes[pane], o.keys[pane] = make(map[string]int64), make(map[string]int64)
	}
	request := strings.Join(params, "&")
	o.panes[pane][request] += n
	for _, key := range o.Keys(params) {
		o.keys[pane][key] += n
	}
	o.keys[pane][""] += n
	if o.sets[request] == nil {
		o.sets[request] = make(map[string]bool)
		for _, p := range params {
			o.sets[request][p] = true
		}
	}
}

// Keys returns the keys of a request in no order: at most 28, and of each size all or none.
func (o *Overlap) Keys(params []string) (keys []string) {
	if o.Each {
		return slices.Clone(params)
	}
	bySize := make([][]string, 4)
	for set := 1; set < 1<<len(params); set++ {
		var some []string
		for i, p := range params {
			if set>>i&1 == 1 {
				some = append(some, p)
			}
		}
		if len(some) <= 3 {
			bySize[len(some)] = append(bySize[len(some)], strings.Join(some, "&"))
		}
	}
	for _, sized := range bySize {
		if len(keys)+len(sized) > 28 {
			break
		}
		keys = append(keys, sized...)
	}
	return keys
}

// has reports whether a request has all parameters of a key.
func (o *Overlap) has(request, key string) bool {
	set, params := o.sets[request], o.parts[key]
	if params == nil {
		params = strings.Split(key, "&")
		o.parts[key] = params
	}
	for _, p := range params {
		if !set[p] {
			return false
		}
	}
	return true
}

// total returns the number of requests in the panes from first to last that have a key.
func (o *Overlap) total(first, last int64, key string) (n int64) {
	for pane := first; pane <= last; pane++ {
		n += o.keys[pane][key]
	}
	return n
}

// count returns the number of requests in the panes from first to last that have a key and pass
// the filter.
func (o *Overlap) count(first, last int64, key string, filter func(request string) bool) (n int64) {
	for pane := first; pane <= last; pane++ {
		for request, m := range o.panes[pane] {
			if o.has(request, key) && filter(request) {
				n += m
			}
		}
	}
	return n
}

// Mean returns a key's mean count in up to ten windows, and how many it averages. The windows lie
// between multiples of their length, end before the window that ends with pane last, and do not
// begin before pane first.
func (o *Overlap) Mean(last, first int64, key string) (mean float64, seen int) {
	end := last - o.Panes
	for (end+1)%o.Panes != 0 {
		end--
	}
	sum := int64(0)
	for ; seen < 10 && end-o.Panes+1 >= first; seen++ {
		sum += o.total(end-o.Panes+1, end, key)
		end -= o.Panes
	}
	return float64(sum) / max(1, float64(seen)), seen
}

// Check compares the keys listed at the end of pane last with the requests. first is the first
// pane that was seen whole.
func (o *Overlap) Check(last, first int64, listed map[string]Listing) (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	for key := range o.since {
		if _, ok := listed[key]; !ok {
			delete(o.since, key)
		}
	}
	for key := range listed {
		if _, ok := o.since[key]; !ok {
			o.since[key] = last
		}
	}
	anyOf := func(wanted func(key string, l Listing) bool) func(request string) bool {
		return func(request string) bool {
			for key, l := range listed {
				if wanted(key, l) && o.has(request, key) {
					return true
				}
			}
			return false
		}
	}
	isLimited := anyOf(func(_ string, l Listing) bool { return !l.Spared })
	isListed := anyOf(func(string, Listing) bool { return true })
	start := last - o.Panes + 1
	all := o.total(start, last, "")
	n := float64(o.N)

	counts := make(map[string]int64)
	sameSpared := func(key string, x int64) bool { // reports whether key, or a part of it with the same requests, is spared
		for other, l := range listed {
			if l.Spared && counts[other] == x && isPart(other, key) {
				return true
			}
		}
		return false
	}
	for pane := start; pane <= last; pane++ {
		for key, m := range o.keys[pane] {
			counts[key] += m
		}
	}
	delete(counts, "")
	for key, x := range counts {
		if x < o.N {
			continue
		}
		slack := 2*n + float64(x)/4 // for a chain of heirs, each short of a threshold
		if free := o.count(start, last, key, func(r string) bool { return !isListed(r) }); float64(free) >= slack {
			say("%s: %d of %d requests have no key that is listed", key, free, x)
		}
		if _, ok := listed[key]; o.Each && !ok {
			say("%s: %d requests, and it is not listed", key, x)
		}
		mean, seen := o.Mean(last, first, key)
		if seen == 0 || sameSpared(key, x) { // these are judged below
			continue
		}
		free := o.count(start, last, key, func(r string) bool { return !isLimited(r) })
		if float64(free) >= mean+slack {
			say("%s: %d of %d requests have no key that is limited; the mean is %.1f", key, free, x, mean)
		}
	}
	for key, l := range listed {
		x := counts[key]
		mean, seen := o.Mean(last, first, key)
		isKin := func(other string, l Listing) bool { return other != key && !l.Usual && !isPart(other, key) }
		explained := o.count(start, last, key, anyOf(isKin))
		switch was, before := o.was[key]; {
		case l.Spared && !l.Usual:
			say("%s is spared and not usual", key)
		case before && l.Usual && !was.Usual && 10*x < 9*all && (seen == 0 || 2*(float64(x)-mean) >= n):
			say("%s is usual: %d of %d requests, and the mean of %d windows is %.1f", key, x, all, seen, mean)
		}
		if l.Spared && !o.Each && o.count(last-12*o.Panes, last, key, anyOf(isKin)) == 0 {
			say("%s is spared, and no key is listed that has requests with it", key)
		}
		// The counts of the other keys that explain this one add up if a request has several of
		// them.
		twice := int64(0)
		for other, l := range listed {
			switch {
			case !isKin(other, l) || o.Each && o.name(other) == o.name(key):
			case o.Each:
				twice += counts[other]
			default:
				twice += o.count(start, last, key, func(r string) bool { return o.has(r, other) })
			}
		}
		long := last-o.since[key] > 13*o.Panes && seen == 10
		if rest := float64(x-min(x, max(explained, twice))) - mean; l.Spared && long && rest >= n {
			say("%s is spared: %.1f above its mean are not explained", key, rest)
		}
		together := int64(math.MinInt64)
		for other, l := range listed {
			if isKin(other, l) && (!o.Each || o.name(other) != o.name(key)) {
				together = max(together, o.count(start, last, key, func(r string) bool { return o.has(r, other) }))
			}
		}
		if l.Usual && !l.Spared && together >= o.N && 2*(float64(x)-mean) < n {
			say("%s is limited: %d of its requests have a hot key that is listed, and its mean is %.1f of %d", key, together, mean, x)
		}
		alone := o.count(start, last, key, func(r string) bool { // without another hot key
			for p := range o.sets[r] {
				if 2*counts[p] >= o.N && !isPart(p, key) {
					return false
				}
			}
			return true
		})
		usual := false // another key is usual: then the counts without it are not
		for other, l := range listed {
			usual = usual || other != key && l.Usual
		}
		if !l.Usual && !usual && long && o.isShared(last, key) && alone >= 2*o.N && float64(x) < mean+n/2 {
			say("%s is not usual: %d of %d requests for long, mean %.1f", key, x, all, mean)
		}
	}
	o.was = make(map[string]Listing)
	for key, l := range listed {
		o.was[key] = l
	}
	delete(o.panes, last-13*o.Panes)
	delete(o.keys, last-13*o.Panes)
	return wrong
}

// name returns the name of a key's only parameter.
func (o *Overlap) name(key string) string {
	name, _, _ := strings.Cut(key, "=")
	return name
}

// isShared reports whether a key was on nine tenths of the requests in each of the last twelve
// windows.
func (o *Overlap) isShared(last int64, key string) bool {
	for end := last; end > last-11*o.Panes; end-- {
		if 10*o.total(end-o.Panes+1, end, key) < 9*o.total(end-o.Panes+1, end, "") {
			return false
		}
	}
	return true
}

// isPart reports whether all parameters of key are among those of another key.
func isPart(key, of string) bool {
	params := strings.Split(of, "&")
	return !slices.ContainsFunc(strings.Split(key, "&"), func(p string) bool { return !slices.Contains(params, p) })
}
