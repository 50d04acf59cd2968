package cachetests

// exception has tests, as patterns of GROUP/ID, that do not pass.
type exception struct {
	policy string // empty: under every policy that counts
	status string // part of the Cache-Status of a response, which shows the reason
	reason string
	tests  []string
}

// exceptions are the tests that do not pass. A test that passes has to leave the table.
var exceptions = []exception{
	{"", "detail=no-cache", "nothing is validated: an answer with no-cache is not stored", []string{
		"cc-response/cc-resp-no-cache-revalidate*",
	}},
	{"narrow", "detail=vary", "nothing is validated: the policy does not name the header by which the answer varies", []string{
		"conditional-inm/conditional-etag-vary-headers",
	}},
	// The origin answers with 999 if the request is not conditional, which is a failure.
	{"", "detail=failed", "nothing is validated: instead of a stale answer another is requested", []string{
		"cc-response/cc-resp-must-revalidate-stale",
		"conditional-inm/conditional-etag-vary-headers",
		"conditional-inm/conditional-etag-strong-generate",
		"conditional-inm/conditional-etag-weak-generate-weak",
		"update304/*",
	}},
	{"", "fwd=miss", "only the policy lets a stale answer be used, within the lifetime that the answer states", []string{
		"stale/stale-while-revalidate*",
	}},
	{"", "detail=failed", "failures are never shared", []string{
		"heuristic/heuristic-501-cached", "heuristic/heuristic-599-cached",
		"status/status-5??-fresh",
	}},
	{"", "detail=no-store", "must-understand is not read: no-store counts", []string{"status/status-200-must-understand"}},
	{"", "detail=method", "only GET and HEAD are shared", []string{"method/method-POST"}},
	{"", "detail=range", "requests for a part go alone", []string{"partial/*"}},
	{"", "detail=authorization", "requests with Authorization go alone, even if the answer is public", []string{
		"auth/other-authorization-*",
	}},
	{"", "detail=cookie", "requests with cookies that the policy does not name go alone", []string{"other/other-cookie"}},
	{"", "detail=set-cookie", "answers that set a cookie are never shared", []string{
		"other/other-set-cookie", "headers/headers-store-Set-Cookie",
	}},
	{"", "detail=content-range", "a 200 with Content-Range is not shared", []string{"headers/headers-store-Content-Range"}},
	{"", "detail=truncated", "the body has another length than Content-Length says", []string{
		"headers/headers-store-Content-Length",
	}},
	{"", "fwd=miss", "values of headers are compared as they are", []string{
		"vary/vary-normalise-lang-*", "vary/vary-normalise-space",
	}},
	{"", "hit", "an answer without Last-Modified is not compared with If-Modified-Since", []string{
		"conditional-lm/conditional-lm-fresh-no-lm",
	}},
	{"", "fwd=miss", "informational responses are left out, since others may join or come later", []string{"interim/*"}},
	{"", "hit", "CDN-Cache-Control is for other caches: what it forbids is allowed here", []string{
		"cdn-cache-control/cdn-max-age-age", "cdn-cache-control/cdn-max-age-0", "cdn-cache-control/cdn-max-age-0-expires",
		"cdn-cache-control/cdn-max-age-long-cc-max-age", "cdn-cache-control/cdn-private",
		"cdn-cache-control/cdn-no-cache", "cdn-cache-control/cdn-no-store-cc-fresh",
	}},
	{"", "fwd=miss", "CDN-Cache-Control is for other caches: what it allows is forbidden here", []string{
		"cdn-cache-control/cdn-max-age-expires", "cdn-cache-control/cdn-max-age-cc-max-age-invalid-expires",
		"cdn-cache-control/cdn-max-age-short-cc-max-age", "cdn-cache-control/cdn-fresh-cc-nostore",
	}},
	{"stale", "fwd=miss", "an answer with s-maxage is not used after the policy's own time", []string{
		"cc-freshness/freshness-s-maxage-shared",
	}},
	{"stale", "detail=no-store", "an answer that is not for sharing removes the stale one that it refreshes", []string{
		"cc-response/cc-resp-no-store-old-*",
	}},
}
