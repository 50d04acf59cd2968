// Package meter measures what a handler does: the bytes and the status of its response (response.go),
// and the time for which it waits for its client (wait.go), while it reads the body or writes
// (client.go).
package meter
