package adaptive_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/hotparam/hotparam/limiter/adaptive"
	"github.com/hotparam/hotparam/rules"
)

// Twice as much on working days, half while the nightly backup runs.
func ExampleSchedule() {
	schedule, err := adaptive.NewSchedule(adaptive.ScheduleConfig{Zone: "Europe/Berlin", Hours: []adaptive.Hours{
		{From: 8 * time.Hour, To: 18 * time.Hour, Factor: 2,
			Days: []time.Weekday{time.Monday, time.Tuesday, time.Wednesday, time.Thursday, time.Friday}},
		{From: 23 * time.Hour, To: 2 * time.Hour, Factor: 0.5}, // into the next day
	}})
	if err != nil {
		panic(err)
	}
	base := rules.Quota{Rate: rules.Rate{N: 100, Per: time.Second}, Burst: 100}
	at := time.Date(2026, time.November, 20, 7, 30, 0, 0, time.UTC)
	for range 4 {
		fmt.Println(at.Format("Mon 15:04 MST"), schedule.Quota(base, at).Rate)
		at = schedule.Next(at)
	}
	// Output:
	// Fri 07:30 UTC 200/s
	// Fri 18:00 CET 100/s
	// Fri 23:00 CET 50/s
	// Sat 02:00 CET 100/s
}

// An instance touches the pages that it serves before it reports that it is ready. Then it takes
// its share of the load step by step.
func ExampleRamp() {
	touched := 0
	handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { touched++ })
	for _, target := range []string{"/search?q=a", "/item?id=1"} {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, target, nil))
	}
	fmt.Println(touched, "touched")

	ramp := adaptive.Ramp{Over: 100 * time.Second}
	const instances = 4
	for _, age := range []time.Duration{15 * time.Second, time.Minute, time.Hour} {
		fmt.Println(100*(instances-1) + ramp.Weight(age, 100))
	}
	// Output:
	// 2 touched
	// 315
	// 360
	// 400
}
