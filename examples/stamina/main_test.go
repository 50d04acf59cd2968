package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/limiter"
)

func newStamina(t *testing.T) *Stamina {
	t.Helper()
	backend, err := limiter.NewMemory(limiter.MemoryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewStamina(backend, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStaminaComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStamina(t)
		for left := range 5 {
			if played, state, err := s.Spend(t.Context(), "ada", 1); err != nil || !played || state.Left != int64(4-left) {
				t.Fatalf("round %d: %v, %+v, %v", left+1, played, state, err)
			}
		}
		tired := State{Left: 0, Next: time.Minute, Full: 5 * time.Minute}
		if played, state, err := s.Spend(t.Context(), "ada", 1); err != nil || played || state != tired {
			t.Fatalf("without stamina: %v, %+v, %v", played, state, err)
		}
		if state, err := s.Look(t.Context(), "bob"); err != nil || state != (State{Left: 5}) {
			t.Fatalf("another player: %+v, %v", state, err)
		}
		time.Sleep(3 * time.Minute)
		if played, state, err := s.Spend(t.Context(), "ada", 2); err != nil || !played || state.Left != 1 {
			t.Fatalf("after a rest: %v, %+v, %v", played, state, err)
		}
		time.Sleep(time.Hour)
		if state, err := s.Look(t.Context(), "ada"); err != nil || state != (State{Left: 5}) {
			t.Fatalf("never above five: %+v, %v", state, err)
		}
		_, _, _ = s.Spend(t.Context(), "ada", 4)
		if err := s.Refill(t.Context(), "ada"); err != nil {
			t.Fatal(err)
		}
		if state, err := s.Look(t.Context(), "ada"); err != nil || state.Left != 5 {
			t.Fatalf("after a potion: %+v, %v", state, err)
		}
	})
}

func TestPlay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		began := time.Now()
		if err := play(t.Context(), &out, newStamina(t), 8); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 3*time.Minute {
			t.Errorf("eight rounds took %v, want three intervals", took)
		}
		if !strings.HasPrefix(out.String(), "♥♥♥♥♡  round 1\n") || strings.Count(out.String(), "♡♡♡♡♡  rest for 1m0s\n") != 3 {
			t.Errorf("seen:\n%s", out.String())
		}
	})
}
