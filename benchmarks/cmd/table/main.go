// Command table reads the output of several passes of go test -bench and writes the medians as
// Markdown, a table for each benchmark. The column "× hotparam" is a part's time divided by that
// of the part "hotparam" in the same pass. The machine may change between passes but hardly
// within one. A ratio below 1 is marked: hotparam is slower there.
package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strconv"
	"strings"
)

// ours is the part that the others are compared with.
const ours = "hotparam"

// contender is one way to do a benchmark's task. Its values are by unit, in the order of passes.
type contender struct {
	name   string
	units  []string
	values map[string][]float64
}

// benchmark is a benchmark.
type benchmark struct {
	name  string
	parts []*contender
}

func (g *benchmark) part(name string) *contender {
	i := slices.IndexFunc(g.parts, func(p *contender) bool { return p.name == name })
	if i < 0 {
		return nil
	}
	return g.parts[i]
}

func main() {
	groups, err := read(os.Stdin)
	if err == nil {
		err = write(os.Stdout, groups)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// read parses lines such as "BenchmarkLimitOne/hotparam-2  100  55.4 ns/op  0 allocs/op".
func read(r io.Reader) ([]*benchmark, error) {
	var groups []*benchmark
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if strings.HasPrefix(strings.TrimPrefix(lines.Text(), "--- "), "FAIL") {
			return nil, fmt.Errorf("a benchmark failed: %s", lines.Text())
		}
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		group, name, found := strings.Cut(strings.TrimPrefix(fields[0], "Benchmark"), "/")
		if !found {
			return nil, fmt.Errorf("%s has no parts to compare", fields[0])
		}
		i := slices.IndexFunc(groups, func(g *benchmark) bool { return g.name == group })
		if i < 0 {
			i = len(groups)
			groups = append(groups, &benchmark{name: group})
		}
		p := groups[i].part(name)
		if p == nil {
			p = &contender{name: name, values: make(map[string][]float64)}
			groups[i].parts = append(groups[i].parts, p)
		}
		for i := 2; i+1 < len(fields); i += 2 {
			value, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", fields[0], err)
			}
			unit := fields[i+1]
			if p.values[unit] == nil {
				p.units = append(p.units, unit)
			}
			p.values[unit] = append(p.values[unit], value)
		}
	}
	return groups, lines.Err()
}

func write(w io.Writer, groups []*benchmark) error {
	for _, g := range groups {
		us := g.part(ours)
		if us == nil {
			return fmt.Errorf("%s has no part %s", g.name, ours)
		}
		fmt.Fprintf(w, "### %s\n\n| | ns | allocs | × hotparam | |\n| --- | ---: | ---: | ---: | --- |\n", g.name)
		for _, p := range g.parts {
			times, base := p.values["ns/op"], us.values["ns/op"]
			ratios := make([]float64, min(len(times), len(base)))
			for i := range ratios {
				ratios[i] = times[i] / base[i]
			}
			ratio := fmt.Sprintf("%.2f", median(ratios))
			if median(ratios) < 1 {
				ratio += " ◄"
			}
			var more []string
			for _, unit := range p.units {
				if !slices.Contains([]string{"ns/op", "B/op", "allocs/op"}, unit) {
					more = append(more, unit+" "+short(median(p.values[unit])))
				}
			}
			if _, err := fmt.Fprintf(w, "| %s | %.4g | %.0f | %s | %s |\n", strings.ReplaceAll(p.name, "_", " "),
				median(times), median(p.values["allocs/op"]), ratio, strings.Join(more, " · ")); err != nil {
				return err
			}
		}
		fmt.Fprintln(w)
	}
	return nil
}

// short formats a number to three digits, or as a whole number.
func short(v float64) string {
	if v >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.SortedFunc(slices.Values(values), cmp.Compare)
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
