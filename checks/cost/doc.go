// Package cost checks hot: {cost: auto} on a real PostgreSQL. The API searches a table of a million
// orders. An index serves nearly all searches. For some values of a parameter the database reads
// the whole table, and then all clients wait.
//
// It is a module of its own, so that the product does not require the driver of PostgreSQL.
//
//   - scenario.go draws the requests, which package load sends when they are due
//   - table.go fills the database, api.go is the API, and instance.go its process
//   - sentinel.go and envoy.go are other ways to protect it
//   - site.go starts all processes, holds.go follows the keys that are held, and run.go runs a scenario
//   - figures.go and verdict.go report the outcome
package cost
