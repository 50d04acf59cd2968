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

	panes       map[int64]map[string]int64 // pane → sorted parameters joined by "&" → requests
	keys        map[int64]map[string]int64 // pane → key → requests; the key "" counts all
	paramSets   map[string]map[string]bool // the parameters of each request
	paramsOf    map[string][]string        // the parameters of each key
	previous    map[string]Listing
	listedSince map[string]int64 // first pane at whose end the key was listed
}

// Listing is how a detector lists a key.
type Listing struct{ Usual, Spared bool }

// Add counts n requests with the given parameters, which are sorted.
func (o *Overlap) Add(pane, n int64, params ...string) {
	if o.panes == nil {
		o.panes, o.keys = make(map[int64]map[string]int64), make(map[int64]map[string]int64)
		o.paramsOf = make(map[string][]string)
		o.previous, o.listedSince, o.paramSets = make(map[string]Listing), make(map[string]int64), make(map[string]map[string]bool)
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
	if o.paramSets[request] == nil {
		o.paramSets[request] = make(map[string]bool)
		for _, p := range params {
			o.paramSets[request][p] = true
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
		var chosen []string
		for i, p := range params {
			if set>>i&1 == 1 {
				chosen = append(chosen, p)
			}
		}
		if len(chosen) <= 3 {
			bySize[len(chosen)] = append(bySize[len(chosen)], strings.Join(chosen, "&"))
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

// hasParams reports whether a request has all parameters of a key.
func (o *Overlap) hasParams(request, key string) bool {
	set, params := o.paramSets[request], o.paramsOf[key]
	if params == nil {
		params = strings.Split(key, "&")
		o.paramsOf[key] = params
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
			if o.hasParams(request, key) && filter(request) {
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
	report := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	for key := range o.listedSince {
		if _, ok := listed[key]; !ok {
			delete(o.listedSince, key)
		}
	}
	for key := range listed {
		if _, ok := o.listedSince[key]; !ok {
			o.listedSince[key] = last
		}
	}
	anyOf := func(wanted func(key string, l Listing) bool) func(request string) bool {
		return func(request string) bool {
			for key, l := range listed {
				if wanted(key, l) && o.hasParams(request, key) {
					return true
				}
			}
			return false
		}
	}
	isLimited := anyOf(func(_ string, l Listing) bool { return !l.Spared })
	isListed := anyOf(func(string, Listing) bool { return true })
	start := last - o.Panes + 1
	requests := o.total(start, last, "")
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
			report("%s: %d of %d requests have no key that is listed", key, free, x)
		}
		if _, ok := listed[key]; o.Each && !ok {
			report("%s: %d requests, and it is not listed", key, x)
		}
		mean, seen := o.Mean(last, first, key)
		if seen == 0 || sameSpared(key, x) { // these are judged below
			continue
		}
		free := o.count(start, last, key, func(r string) bool { return !isLimited(r) })
		if float64(free) >= mean+slack {
			report("%s: %d of %d requests have no key that is limited; the mean is %.1f", key, free, x, mean)
		}
	}
	for key, l := range listed {
		x := counts[key]
		mean, seen := o.Mean(last, first, key)
		isKin := func(other string, l Listing) bool { return other != key && !l.Usual && !isPart(other, key) }
		explained := o.count(start, last, key, anyOf(isKin))
		switch earlier, wasListed := o.previous[key]; {
		case l.Spared && !l.Usual:
			report("%s is spared and not usual", key)
		case wasListed && l.Usual && !earlier.Usual && 10*x < 9*requests && (seen == 0 || 2*(float64(x)-mean) >= n):
			report("%s is usual: %d of %d requests, and the mean of %d windows is %.1f", key, x, requests, seen, mean)
		}
		if l.Spared && !o.Each && o.count(last-12*o.Panes, last, key, anyOf(isKin)) == 0 {
			report("%s is spared, and no key is listed that has requests with it", key)
		}
		// The counts of the other keys that explain this one add up if a request has several of
		// them.
		withOthers := int64(0)
		for other, l := range listed {
			switch {
			case !isKin(other, l) || o.Each && o.paramName(other) == o.paramName(key):
			case o.Each:
				withOthers += counts[other]
			default:
				withOthers += o.count(start, last, key, func(r string) bool { return o.hasParams(r, other) })
			}
		}
		isLongListed := last-o.listedSince[key] > 13*o.Panes && seen == 10
		if unexplained := float64(x-min(x, max(explained, withOthers))) - mean; l.Spared && isLongListed && unexplained >= n {
			report("%s is spared: %.1f above its mean are not explained", key, unexplained)
		}
		withHotKey := int64(math.MinInt64)
		for other, l := range listed {
			if isKin(other, l) && (!o.Each || o.paramName(other) != o.paramName(key)) {
				withHotKey = max(withHotKey, o.count(start, last, key, func(r string) bool { return o.hasParams(r, other) }))
			}
		}
		if l.Usual && !l.Spared && withHotKey >= o.N && 2*(float64(x)-mean) < n {
			report("%s is limited: %d of its requests have a hot key that is listed, and its mean is %.1f of %d", key, withHotKey, mean, x)
		}
		withoutHotKey := o.count(start, last, key, func(r string) bool { // without another hot key
			for p := range o.paramSets[r] {
				if 2*counts[p] >= o.N && !isPart(p, key) {
					return false
				}
			}
			return true
		})
		hasUsualOther := false // another key is usual: then the counts without it are not
		for other, l := range listed {
			hasUsualOther = hasUsualOther || other != key && l.Usual
		}
		if !l.Usual && !hasUsualOther && isLongListed && o.isShared(last, key) && withoutHotKey >= 2*o.N && float64(x) < mean+n/2 {
			report("%s is not usual: %d of %d requests for long, mean %.1f", key, x, requests, mean)
		}
	}
	o.previous = make(map[string]Listing)
	for key, l := range listed {
		o.previous[key] = l
	}
	delete(o.panes, last-13*o.Panes)
	delete(o.keys, last-13*o.Panes)
	return wrong
}

// paramName returns the name of a key's only parameter.
func (o *Overlap) paramName(key string) string {
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
func isPart(key, whole string) bool {
	params := strings.Split(whole, "&")
	return !slices.ContainsFunc(strings.Split(key, "&"), func(p string) bool { return !slices.Contains(params, p) })
}
