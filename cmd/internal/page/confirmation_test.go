package page

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A confirmation is good for one order, of its author and for a short time.
func TestReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newActingPage(t)
		act := func(id string, headers ...string) int {
			status, _ := p.send("/api/v1/act", anyMap{"confirmation": id, "for": "10m", "why": "x"}, headers...)
			return status
		}
		id := p.confirmation(t, "block")
		if status := act(id, "Authorization", "Bearer "+people[1].Token); status != http.StatusConflict {
			t.Errorf("by another person: %d", status)
		}
		var once sync.WaitGroup
		for range 8 {
			once.Go(func() { act(id) })
		}
		once.Wait()
		if n := len(p.actor.all()); n != 1 {
			t.Errorf("%d orders by one confirmation", n)
		}
		id = p.confirmation(t, "block")
		time.Sleep(confirmationLife)
		if status := act(id); status != http.StatusConflict {
			t.Errorf("too late: %d", status)
		}
		for _, forged := range []string{"", id + "x", strings.ToLower(id)} {
			if status := act(forged); status != http.StatusConflict {
				t.Errorf("%q: %d", forged, status)
			}
		}
		first := p.confirmation(t, "block")
		time.Sleep(time.Second)
		for range maxOpenByPerson {
			id = p.confirmation(t, "block")
		}
		if n := len(p.page.acting.confirmations.open); n > maxOpenByPerson {
			t.Errorf("%d are open", n)
		}
		time.Sleep(time.Minute)
		if a, b := act(first), act(id); a != http.StatusConflict || b != http.StatusOK {
			t.Errorf("the first of many: %d, the last: %d", a, b)
		}
	})
}

// Actions are bounded for each person and for all, and wrong tokens for each address.
func TestActsAreBounded(t *testing.T) {
	p := newActingPage(t)
	for i := range actsPerPerson + 5 {
		status, answer := p.send("/api/v1/act", anyMap{"confirmation": p.confirmation(t, "block"), "for": "10m", "why": "x"})
		if want := i < actsPerPerson; (status == http.StatusOK) != want || !want && status != http.StatusTooManyRequests {
			t.Errorf("action %d: %d %v", i, status, answer)
		}
	}
	bob := []string{"Authorization", "Bearer " + people[1].Token}
	if status, answer := p.send("/api/v1/act", anyMap{"confirmation": p.confirmation(t, "block", bob...), "for": "10m", "why": "x"}, bob...); status != http.StatusOK {
		t.Errorf("another person: %d %v", status, answer)
	}
	for range actsPerMinute {
		p.page.acting.all.Allow()
	}
	if status, _ := p.send("/api/v1/act", anyMap{"confirmation": p.confirmation(t, "block", bob...), "for": "10m", "why": "x"}, bob...); status != http.StatusTooManyRequests {
		t.Errorf("beyond the bound of all: %d", status)
	}
	for range attemptBurst {
		p.send("/api/v1/act", anyMap{}, "Authorization", "Bearer guess")
	}
	if status, _ := p.send("/api/v1/act/confirmation", anyMap{"key": hotKey, "action": "block"}); status != http.StatusTooManyRequests {
		t.Errorf("after %d wrong tokens the right one: %d", attemptBurst, status)
	}
}
