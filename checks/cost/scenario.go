package cost

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Scenario is what the clients ask for.
type Scenario struct {
	Name string
	// By is the part of a request that the rule makes keys of, in the form of the rules file.
	By string
	// Causes returns the keys that are the cause at a time since their beginning, each with the
	// path of its requests. Each is asked for at Share of all requests.
	Causes func(since time.Duration) []Cause
	// Mixed adds requests that have one half of the cause each, and are quick.
	Mixed bool
}

// Cause is a key for which the database reads the whole table.
type Cause struct{ Key, Path string }

// wordCause is a search for a word that no note has.
func wordCause(word string) Cause {
	return Cause{"GET /orders?q=" + word, "/orders?shop=" + allShops + "&q=" + word}
}

// Scenarios returns all scenarios.
func Scenarios() []Scenario {
	fixed := func(causes ...Cause) func(time.Duration) []Cause {
		return func(time.Duration) []Cause { return causes }
	}
	var ten []Cause
	for i := range 10 {
		ten = append(ten, wordCause(fmt.Sprintf("refund%d", i)))
	}
	pair := wordCause("refund")
	pair.Key = "GET /orders?q=refund&shop=" + allShops
	return []Scenario{
		{Name: "none", By: "[q]", Causes: fixed()},
		{Name: "one", By: "[q]", Causes: fixed(wordCause("refund"))},
		{Name: "ten", By: "[q]", Causes: fixed(ten...)},
		{Name: "moving", By: "[q]", Causes: func(since time.Duration) []Cause {
			return []Cause{wordCause(fmt.Sprintf("refund%d", since/(5*time.Second)))}
		}},
		{Name: "pair", By: "{combinations: [shop, q]}", Causes: fixed(pair), Mixed: true},
		{Name: "two", By: "[q]", Causes: fixed(wordCause("refund"), Cause{"GET /export?sort=note", "/export?sort=note"})},
	}
}

// request is one request of a scenario.
type request struct {
	due   time.Duration // since the beginning of the run
	path  string
	cause string // the key for which the database reads the whole table; empty for an innocent request
}

// Load is how much is asked for, and when.
type Load struct {
	Rate  float64 // requests per second
	Share float64 // part of the requests that each cause has
	// The clients first ask for other keys alone, then also for the cause, then no longer.
	Before, During, After time.Duration
}

func (l Load) end() time.Duration { return l.Before + l.During + l.After }

// requests returns the requests of a run, at random times, always the same.
func (s Scenario) requests(l Load) (all []request) {
	random := rand.New(rand.NewPCG(1, 2))
	shops := rand.NewZipf(random, 1.1, 10, shopCount-1)
	words := rand.NewZipf(random, 1.1, 10, shopCount-1)
	common := []string{"paid", "sent", "open", "late"}
	arrivals := func(rate float64, from, to time.Duration, draw func(at time.Duration) request) {
		at := from
		for {
			at += time.Duration(-math.Log(1-random.Float64()) / rate * float64(time.Second))
			if at >= to {
				return
			}
			r := draw(at)
			r.due = at
			all = append(all, r)
		}
	}
	arrivals(l.Rate, 0, l.end(), func(time.Duration) request {
		shop, word := fmt.Sprint(shops.Uint64()), fmt.Sprintf("w%d", words.Uint64())
		switch kind := random.IntN(100); {
		case kind == 0:
			return request{path: "/export?sort=id"}
		case kind == 1 && s.Mixed:
			shop, word = allShops, common[random.IntN(len(common))]
		case kind == 2 && s.Mixed:
			word = "refund"
		}
		return request{path: "/orders?shop=" + shop + "&q=" + word}
	})
	for i := range s.Causes(0) {
		arrivals(l.Rate*l.Share, l.Before, l.Before+l.During, func(at time.Duration) request {
			cause := s.Causes(at - l.Before)[i]
			return request{path: cause.Path, cause: cause.Key}
		})
	}
	slices.SortFunc(all, func(a, b request) int { return cmp.Compare(a.due, b.due) })
	return all
}
