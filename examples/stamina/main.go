// Command stamina is a game in which a player has five points of stamina, spends one on each
// round, and regains one every few seconds. It is a token bucket, seen from the other side.
//
//	go run ./examples/stamina                                     # one player, in memory
//	go run ./examples/stamina --redis redis://127.0.0.1:6379/0    # the same stamina wherever they play
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"time"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/redislimiter"
	"github.com/hotparam/hotparam/rules"
)

const full = 5

// Stamina holds the remaining points of players.
type Stamina struct{ points *limiter.Limiter }

// NewStamina gives each player full points, and one more each interval.
func NewStamina(backend limiter.Backend, interval time.Duration) (*Stamina, error) {
	points, err := limiter.New(backend, "stamina", rules.Quota{Rate: rules.Rate{N: 1, Per: interval}, Burst: full})
	return &Stamina{points}, err
}

// State is the state of a player's points.
type State struct {
	Left int64
	Next time.Duration // time until there are enough points; 0 if there are enough
	Full time.Duration // time until all points are back
}

// Spend takes points for a round. If there are too few, state has the time until there are
// enough.
func (s *Stamina) Spend(ctx context.Context, player string, points int64) (played bool, state State, err error) {
	d, err := s.points.AllowN(ctx, player, points)
	return d.Allowed, State{d.Remaining, d.RetryAfter, d.ResetAfter}, err
}

// Look returns a player's state without taking points.
func (s *Stamina) Look(ctx context.Context, player string) (State, error) {
	d, err := s.points.Peek(ctx, player, 1)
	return State{d.Remaining, d.RetryAfter, d.ResetAfter}, err
}

// Refill returns all points to a player, as a potion does.
func (s *Stamina) Refill(ctx context.Context, player string) error {
	return s.points.Reset(ctx, player)
}

func main() {
	url := flag.String("redis", "", "`URL` of the Redis that keeps the points (default: in memory)")
	interval := flag.Duration("interval", 2*time.Second, "after which a point is back")
	rounds := flag.Int("rounds", 8, "how many to play")
	flag.Parse()
	backend, err := newBackend(*url)
	if err != nil {
		log.Fatal(err)
	}
	stamina, err := NewStamina(backend, *interval)
	if err != nil {
		log.Fatal(err)
	}
	if err := play(context.Background(), os.Stdout, stamina, *rounds); err != nil {
		log.Fatal(err)
	}
}

func newBackend(url string) (limiter.Backend, error) {
	if url == "" {
		return limiter.NewMemory(limiter.MemoryConfig{})
	}
	client, err := hotkeys.NewClient(url)
	if err != nil {
		return nil, err
	}
	return redislimiter.New(client, redislimiter.Config{Namespace: "game"})
}

// play plays rounds, and rests whenever there are too few points for one.
func play(ctx context.Context, w io.Writer, stamina *Stamina, rounds int) error {
	for round := 1; round <= rounds; {
		played, state, err := stamina.Spend(ctx, "ada", 1)
		if err != nil {
			return err
		}
		bar := strings.Repeat("♥", int(state.Left)) + strings.Repeat("♡", full-int(state.Left))
		if played {
			fmt.Fprintf(w, "%s  round %d\n", bar, round)
			round++
			continue
		}
		fmt.Fprintf(w, "%s  rest for %v\n", bar, state.Next.Round(100*time.Millisecond))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(state.Next):
		}
	}
	return nil
}
