// Asks hotparam about a request. It has to run in njs, whose engine knows no "for … of".
const ofLimit = ['RateLimit', 'RateLimit-Policy'];
const ofRefusal = ['Retry-After', 'Content-Type', 'Cache-Control'].concat(ofLimit);

async function access(r) {
  let reply, body;
  try {
    // The client's own headers first: those that say what is asked about replace them.
    const headers = new Headers();
    r.rawHeadersIn.forEach(function (header) { // r.headersIn joins those that come twice
      if (!/^(connection|content-length|transfer-encoding|expect|upgrade|te|x-original-.*|x-real-ip)$/i.test(header[0])) {
        headers.append(header[0], header[1]);
      }
    });
    headers.set('X-Original-Method', r.method);
    headers.set('X-Original-URI', r.variables.request_uri);
    headers.set('X-Real-IP', r.remoteAddress);
    reply = await ngx.fetch(r.variables.hotparam_url, {headers: headers});
    if (!reply.headers.get('X-Hotparam')) {
      return; // it is an error, or not hotparam's
    }
    body = await reply.text();
  } catch (e) {
    r.warn('hotparam does not answer: ' + e);
    return;
  }
  const passes = reply.status < 300;
  (passes ? ofLimit : ofRefusal).forEach(function (name) {
    const value = reply.headers.get(name);
    if (value) {
      r.headersOut[name] = value;
    }
  });
  if (!passes) {
    r.return(reply.status, body);
  }
}

export default {access};
