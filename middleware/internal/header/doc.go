// Package header reads the headers of a request from which rules take parameters: cookies
// (cookies.go), and the client's address (clientaddr.go), which proxies append to others (hops.go).
package header
