package main

import (
	"strings"
	"testing"
)

// A pass during which the machine is ten times slower does not change the ratios.
func TestRatiosAreOfTheSamePass(t *testing.T) {
	groups, err := read(strings.NewReader(`goos: linux
BenchmarkTask/hotparam   	 100	  10.0 ns/op	  0.5 recall	 0 B/op	 0 allocs/op
BenchmarkTask/a_peer     	 100	  20.0 ns/op	 16 B/op	 1 allocs/op
BenchmarkTask/floor      	 100	   5.0 ns/op	  0 B/op	 0 allocs/op
BenchmarkTask/hotparam   	 100	 100 ns/op	  0.7 recall	 0 B/op	 0 allocs/op
BenchmarkTask/a_peer     	 100	 200 ns/op	 16 B/op	 1 allocs/op
BenchmarkTask/floor      	 100	  50 ns/op	  0 B/op	 0 allocs/op
PASS
`))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := write(&out, groups); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"### Task\n",
		"| hotparam | 55 | 0 | 1.00 | recall 0.6 |\n",
		"| a peer | 110 | 1 | 2.00 |  |\n",
		"| floor | 27.5 | 0 | 0.50 ◄ |  |\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestAGroupWithoutOursIsAnError(t *testing.T) {
	groups, err := read(strings.NewReader("BenchmarkTask/a_peer 100 20.0 ns/op\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := write(&strings.Builder{}, groups); err == nil {
		t.Error("no error")
	}
}

func TestAFailedBenchmarkGivesNoTable(t *testing.T) {
	for _, line := range []string{"--- FAIL: BenchmarkTask/hotparam", "FAIL", "FAIL	example.com/benchmarks [build failed]"} {
		if _, err := read(strings.NewReader("BenchmarkTask/hotparam 100 20.0 ns/op\n" + line + "\n")); err == nil {
			t.Errorf("no error for %q", line)
		}
	}
}
