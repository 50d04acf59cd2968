// Package chart draws bars and lines as SVG for the pages of docs, and replaces their tables.
package chart

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// palette holds colours that are distinct on white and on black, also for colour-blind readers.
// They are those of Okabe and Ito without the two that vanish on one of the backgrounds.
var palette = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"}

// style follows the reader's light or dark mode.
const style = `<style>
text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #424a53 }
.title { font-weight: 600; font-size: 14px; fill: #1f2328 }
.value { font-variant-numeric: tabular-nums }
.grid { stroke: #d0d7de; stroke-width: 1 }
.goal { stroke: #57606a; stroke-width: 1.5; stroke-dasharray: 5 4 }
@media (prefers-color-scheme: dark) {
  text { fill: #9da7b1 } .title { fill: #e6edf3 }
  .grid { stroke: #3d444d } .goal { stroke: #9da7b1 }
}
</style>
`

const chartWidth = 760

// svg is a picture in progress.
type svg struct {
	body   strings.Builder
	height float64
}

func (s *svg) drawText(x, y float64, anchor, class, text string) {
	fmt.Fprintf(&s.body, `<text x="%.1f" y="%.1f" text-anchor="%s" class="%s">%s</text>`+"\n", x, y, anchor, class, escape(text))
}

func (s *svg) drawLine(x1, y1, x2, y2 float64, class string) {
	fmt.Fprintf(&s.body, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" class="%s"/>`+"\n", x1, y1, x2, y2, class)
}

// String returns the whole picture.
func (s *svg) String() string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %.0f" width="%d" height="%.0f" role="img">`+"\n%s%s</svg>\n",
		chartWidth, s.height, chartWidth, s.height, style, s.body.String())
}

func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}

// Row is one bar, with its value as text and as a length in any unit.
type Row struct {
	Name, Value string
	Length      float64
}

// Bars draws horizontal bars, and a dashed line for a goal above 0.
func Bars(title string, rows []Row, goal float64, goalName string) string {
	const left, right, top, step, thick = 230.0, 150.0, 48.0, 34.0, 20.0
	s := &svg{height: top + step*float64(len(rows)) + 24}
	longest := goal
	for _, r := range rows {
		longest = max(longest, r.Length)
	}
	scale := (chartWidth - left - right) / longest
	s.drawText(16, 24, "start", "title", title)
	for i, r := range rows {
		y := top + step*float64(i)
		s.drawText(left-12, y+15, "end", "", r.Name)
		fmt.Fprintf(&s.body, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="2" fill="%s"/>`+"\n",
			left, y, max(1, r.Length*scale), thick, palette[i%len(palette)])
		s.drawText(max(left+r.Length*scale, goalEdge(goal, r.Length, left, scale))+8, y+15, "start", "value", r.Value)
	}
	if goal > 0 {
		x := left + goal*scale
		bottom := top + step*float64(len(rows)) - 8
		s.drawLine(x, top-8, x, bottom, "goal")
		s.drawText(x, bottom+18, "middle", "", goalName)
	}
	return s.String()
}

// goalEdge returns the x of the goal's line if it would cross the value of a bar that ends near
// it, so that the value is drawn beyond the line. Otherwise it returns 0.
func goalEdge(goal, length, left, scale float64) float64 {
	if x := left + goal*scale; goal > 0 && length <= goal && x-(left+length*scale) < 110 {
		return x
	}
	return 0
}

// Series is a line of points.
type Series struct {
	Name string
	X, Y []float64
}

// Axis is the scale of one coordinate.
type Axis struct {
	Name  string
	From  float64
	To    float64
	Ticks []float64
	Log   bool
	Unit  string
}

func (a *Axis) fraction(v float64) float64 {
	if a.Log {
		return (math.Log(v) - math.Log(a.From)) / (math.Log(a.To) - math.Log(a.From))
	}
	return (v - a.From) / (a.To - a.From)
}

// Mark is a dashed line at a value of x.
type Mark struct {
	X    float64
	Name string
}

// Lines draws series over two axes.
func Lines(title string, x, y Axis, all []Series, goals ...Mark) string {
	const left, right, top, high = 70.0, 190.0, 56.0, 260.0
	s := &svg{height: top + high + 56}
	wide := chartWidth - left - right
	px := func(v float64) float64 { return left + x.fraction(v)*wide }
	py := func(v float64) float64 { return top + (1-y.fraction(v))*high }
	s.drawText(16, 24, "start", "title", title)
	for _, t := range y.Ticks {
		s.drawLine(left, py(t), left+wide, py(t), "grid")
		s.drawText(left-8, py(t)+4, "end", "value", fmt.Sprintf("%g%s", t, y.Unit))
	}
	for _, t := range x.Ticks {
		s.drawLine(px(t), top+high, px(t), top+high+5, "grid")
		s.drawText(px(t), top+high+20, "middle", "value", fmt.Sprintf("%g%s", t, x.Unit))
	}
	s.drawText(left+wide/2, top+high+44, "middle", "", x.Name)
	for _, g := range goals {
		s.drawLine(px(g.X), top, px(g.X), top+high, "goal")
		s.drawText(px(g.X), top-6, "middle", "", g.Name)
	}
	for i, line := range all {
		colour := palette[i%len(palette)]
		var points strings.Builder
		for j := range line.X {
			fmt.Fprintf(&points, "%.1f,%.1f ", px(line.X[j]), py(line.Y[j]))
		}
		fmt.Fprintf(&s.body, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2.5"/>`+"\n", strings.TrimSpace(points.String()), colour)
		ly := top + 14 + 22*float64(i)
		fmt.Fprintf(&s.body, `<rect x="%.1f" y="%.1f" width="14" height="4" fill="%s"/>`+"\n", left+wide+18, ly-6, colour)
		s.drawText(left+wide+38, ly, "start", "", line.Name)
	}
	return s.String()
}

// Ticks returns up to five round steps from 0 to at least top.
func Ticks(top float64) []float64 {
	for unit := math.Pow(10, math.Floor(math.Log10(top))-1); ; unit *= 10 {
		for _, times := range []float64{1, 2, 2.5, 5} {
			step := times * unit
			if n := int(math.Ceil(top/step - 1e-9)); n <= 5 {
				values := make([]float64, 0, n+1)
				for i := range n + 1 {
					values = append(values, float64(i)*step)
				}
				return slices.Clip(values)
			}
		}
	}
}
