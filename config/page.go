package config

import (
	"fmt"
	"net"
	"strings"
)

// Words of [Aggregator.Page]: whether the aggregator serves its page.
const (
	PageOn  = "on"
	PageOff = "off"
)

// maxPageHosts bounds page_hosts, which each request's Host is compared with.
const maxPageHosts = 32

// pageHosts reads names of the server, without ports.
func (d *decoder) pageHosts(n *fileNode, what string) (hosts []string) {
	const example = "for example [hotparam.example, 10.0.0.5]"
	for _, item := range d.some(n, what, example, maxPageHosts, "names") {
		s, ok := d.scalar(item, what)
		switch {
		case !ok:
		case strings.Contains(s, "*"):
			d.reject(item, "write each name: a pattern would also allow names that belong to others", "%s %s: patterns are not allowed", what, quote(s))
		case !isHostName(s):
			d.reject(item, example, "%s %s: want a name or an address, without scheme and port", what, quote(s))
		default:
			hosts = append(hosts, s)
		}
	}
	return hosts
}

func isHostName(s string) bool {
	if net.ParseIP(s) != nil {
		return true
	}
	return s != "" && len(s) <= 253 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") == ""
}

// PageToken reads the token that opens the page. It returns "" if the file names none.
func (a Aggregator) PageToken() (string, error) {
	token, err := readToken(a.PageTokenFile, a.PageTokenEnv)
	if err != nil {
		return "", fmt.Errorf("aggregator.page_token: %w", err)
	}
	return token, nil
}
