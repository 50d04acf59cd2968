// Package graphitesource finds hot keys in the counts that a StatsD has written to
// Graphite: a job asks Graphite's render API about each second.
package graphitesource
