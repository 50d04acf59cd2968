package base

import (
	"sync/atomic"
	"testing"
)

type counters[N any] struct {
	Packets, Lines N
	Refused        [3]N
	By             struct{ Fetch, Group N }
}

func TestLoadCountersReadsEachCounter(t *testing.T) {
	var c counters[atomic.Int64]
	c.Packets.Add(1)
	c.Lines.Add(2)
	c.Refused[2].Add(3)
	c.By.Group.Add(4)
	want := counters[int64]{Packets: 1, Lines: 2, Refused: [3]int64{0, 0, 3}}
	want.By.Group = 4
	if got := LoadCounters[counters[int64]](&c); got != want {
		t.Errorf("Load: %+v, want %+v", got, want)
	}
}

func TestAddCountersAddsEachNumber(t *testing.T) {
	sum := counters[int64]{Packets: 1, Refused: [3]int64{1, 2, 3}}
	more := counters[int64]{Packets: 10, Lines: 20, Refused: [3]int64{10, 0, 30}}
	more.By.Fetch = 5
	want := counters[int64]{Packets: 11, Lines: 20, Refused: [3]int64{11, 2, 33}}
	want.By.Fetch = 5
	if AddCounters(&sum, &more); sum != want {
		t.Errorf("Add: %+v, want %+v", sum, want)
	}
}
