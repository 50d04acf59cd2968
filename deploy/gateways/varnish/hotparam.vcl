vcl 4.1;

# Varnish 7 and later, with the vmod header of varnish-modules. It asks hotparam about each request,
# and answers identical requests of a hot key from its cache, if the key's rule has on_hot.
# docs/gateways/varnish.md describes it.
#
#   varnishd -f /etc/varnish/hotparam.vcl -a :8000 -a hotparam=127.0.0.1:8001
#
#   client ─► count ── not hot ──────────────────────────────────► application
#               ├── hot, may be shared ──► cache ── miss ──► socket hotparam ─► limit ─► application
#               │                            │                              (of a request without a user)
#               │                            ▼ the answer is not for others
#               └── hot, any other ────────► limit ──────────────► application
#
# hotparam is asked by the client's own request, which begins again (restart) after a yes. Headers of
# the request hold what is next. X-Hotparam-Step is the step of hotparam that is asked, if any, and
# X-Hotparam-Way the way after it: "cache", "stripped", or none.

import header;
import std;

backend hotparam {
  .host = "127.0.0.1";                 # guard: auth: [{listen: "127.0.0.1:9132"}]
  .port = "9132";
  # Requests pass if hotparam does not answer in this time.
  .connect_timeout = 50ms;
  .first_byte_timeout = 50ms;
  .between_bytes_timeout = 50ms;
}

backend app {
  .host = "127.0.0.1";
  .port = "8080";
}

# Varnish itself, for the limit on the way from the cache to the application.
backend limited {
  .host = "127.0.0.1";
  .port = "8001";
}

sub vcl_recv {
  if (req.restarts == 0) {
    if ((req.http.Content-Length || req.http.Transfer-Encoding) && !std.cache_req_body(10MB)) {
      return (synth(413));             # a body is kept in memory while hotparam is asked
    }
    # A client's own.
    unset req.http.X-Hotparam-Step;
    unset req.http.X-Hotparam-Way;
    unset req.http.X-Hotparam-Hot;
    unset req.http.X-Hotparam-Limit;
    unset req.http.X-Hotparam-Policy;
    set req.http.X-Original-URI = req.url;
    if (local.socket == "hotparam") {
      set req.http.X-Hotparam-Step = "limit";
      set req.http.X-Forwarded-For = regsub(req.http.X-Forwarded-For, ",[^,]*$", "");    # without Varnish
    } else {
      set req.http.X-Hotparam-Step = "count";
      set req.http.X-Original-Method = req.method;
      set req.http.X-Real-IP = client.ip;
    }
  }
  if (req.http.X-Hotparam-Step) {
    set req.backend_hint = hotparam;
    return (pass);
  }
  if (req.http.X-Hotparam-Way == "cache") {
    set req.backend_hint = limited;
    return (hash);
  }
  set req.backend_hint = app;
  return (pass);
}

# The key of the cache, with each header that vcl_backend_fetch leaves to the application.
sub vcl_hash {
  hash_data(req.http.Host);
  hash_data(req.url);
  return (lookup);
}

sub vcl_pass {
  if (req.http.X-Hotparam-Way == "cache") {    # an answer that is known not to be for others
    call alone;
    return (restart);
  }
}

sub alone {
  unset req.http.X-Hotparam-Way;
  set req.http.X-Hotparam-Step = "limit";
}

sub vcl_backend_fetch {
  if (bereq.http.X-Hotparam-Step) {
    set bereq.url = "/original/" + bereq.http.X-Hotparam-Step;
    set bereq.method = "GET";
    unset bereq.body;
    return (fetch);
  }
  if (bereq.http.X-Hotparam-Way == "stripped") {
    # The application sees only what is in the key, so that nothing else shapes an answer for others.
    header.regsub(bereq, "^(?i)(?!host:).*", "X-Hotparam-Way: none");
  }
  if (bereq.http.X-Hotparam-Way != "cache") {
    unset bereq.http.X-Original-Method;
    unset bereq.http.X-Original-URI;
    unset bereq.http.X-Hotparam-Limit;
    unset bereq.http.X-Hotparam-Policy;
    unset bereq.http.X-Hotparam-Way;
  }
  return (fetch);
}

sub vcl_backend_response {
  if (bereq.http.X-Hotparam-Step) {
    if (!beresp.http.X-Hotparam) {    # an error, such as a wrong token: the request passes
      set beresp.status = 200;
    }
    return (deliver);
  }
  if (bereq.http.X-Hotparam-Way != "cache") {
    return (deliver);
  }
  if (beresp.http.X-Hotparam) {       # refused by the limit
    set beresp.uncacheable = true;
    set beresp.ttl = 100ms;
    return (deliver);
  }
  std.collect(beresp.http.Cache-Control);
  std.collect(beresp.http.Vary);
  if (beresp.status != 200 || beresp.ttl <= 0s
      || beresp.http.Set-Cookie || beresp.http.Content-Range || beresp.http.Trailer
      || beresp.http.Cache-Control ~ "(?i)no-store|no-cache|private"
      || (std.time(beresp.http.Expires, now - 1s) < now && beresp.http.Expires && !beresp.http.Cache-Control)    # no date
      || (beresp.http.Pragma ~ "(?i)no-cache" && !beresp.http.Cache-Control)
      || (beresp.http.Vary && beresp.http.Vary !~ "(?i)^\s*accept-encoding\s*$")
      || beresp.http.Content-Type ~ "(?i)^text/event-stream") {
    set beresp.http.X-Hotparam-Alone = "1";
    return (pass(10s));
  }
  # How long it is fresh, and how long it is used while one request refreshes it. The application
  # can shorten both.
  set beresp.grace = beresp.ttl - 500ms;
  set beresp.ttl = 500ms;
  if (beresp.grace > 2s) {
    set beresp.grace = 2s;
  }
  if (beresp.grace < 0s) {
    set beresp.ttl = beresp.ttl + beresp.grace;
    set beresp.grace = 0s;
  }
  if (beresp.http.Cache-Control ~ "(?i)revalidate|s-maxage") {
    set beresp.grace = 0s;
  }
  set beresp.keep = 0s;
  set beresp.do_stream = false;       # others get it when it is complete
  return (deliver);
}

sub vcl_backend_error {
  if (bereq.http.X-Hotparam-Step) {   # unavailable: the request passes
    set beresp.status = 200;
    return (deliver);
  }
  if (bereq.http.X-Hotparam-Way == "cache") {
    set beresp.http.X-Hotparam-Alone = "1";
    set beresp.uncacheable = true;
    set beresp.ttl = 100ms;
    return (deliver);
  }
}

sub vcl_deliver {
  if (req.http.X-Hotparam-Step && resp.status == 200) {
    if (req.http.X-Hotparam-Step == "limit") {
      unset req.http.X-Hotparam-Step;
      if (local.socket == "hotparam") {
        set req.http.X-Hotparam-Way = "stripped";
      }
    } elsif (resp.http.X-Hotparam-Hot != "1") {
      unset req.http.X-Hotparam-Step;
    } elsif ((req.method == "GET" || req.method == "HEAD")
        && !req.http.Content-Length && !req.http.Transfer-Encoding
        && !req.http.Cookie && !req.http.Authorization && !req.http.Proxy-Authorization
        && !req.http.Range && !req.http.Upgrade && !req.http.If-Match && !req.http.If-Unmodified-Since
        && !req.http.Cache-Control && !req.http.Pragma) {
      unset req.http.X-Hotparam-Step;
      set req.http.X-Hotparam-Way = "cache";
    } else {
      set req.http.X-Hotparam-Step = "limit";
    }
    set req.http.X-Hotparam-Limit = resp.http.RateLimit;
    set req.http.X-Hotparam-Policy = resp.http.RateLimit-Policy;
    return (restart);
  }
  if (req.http.X-Hotparam-Way == "cache" && resp.http.X-Hotparam-Alone) {
    call alone;
    return (restart);
  }
  if (req.http.X-Hotparam-Way == "cache") {
    if (obj.hits > 0) {
      set resp.http.Cache-Status = "hotparam; hit";
    } else {
      set resp.http.Cache-Status = "hotparam; fwd=uri-miss";
    }
  } elsif (!req.http.X-Hotparam-Step && req.http.X-Hotparam-Limit != "" && local.socket != "hotparam") {
    set resp.http.RateLimit = req.http.X-Hotparam-Limit;
    set resp.http.RateLimit-Policy = req.http.X-Hotparam-Policy;
  }
  if (local.socket != "hotparam") {
    unset resp.http.X-Hotparam;
  }
  return (deliver);
}
