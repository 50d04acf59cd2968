// Asks hotparam about a request. It has to run in njs, whose engine knows no "for … of".
const passedOn = ['Retry-After', 'RateLimit', 'RateLimit-Policy', 'Content-Type', 'Cache-Control'];

async function access(r) {
  let reply, body;
  try {
    // The client's own headers first: those that say what is asked about replace them.
    const headers = {};
    Object.keys(r.headersIn).forEach(function (name) {
      if (!/^(connection|content-length|transfer-encoding|expect|upgrade|te|x-original-.*|x-real-ip)$/i.test(name)) {
        headers[name] = r.headersIn[name];
      }
    });
    headers['X-Original-Method'] = r.method;
    headers['X-Original-URI'] = r.variables.request_uri;
    headers['X-Real-IP'] = r.remoteAddress;
    reply = await ngx.fetch(r.variables.hotparam_url, {headers: headers});
    if (reply.status < 300 || !reply.headers.get('X-Hotparam')) {
      return; // without the header it is an error, or not hotparam's
    }
    body = await reply.text();
  } catch (e) {
    r.warn('hotparam does not answer: ' + e);
    return;
  }
  passedOn.forEach(function (name) {
    const value = reply.headers.get(name);
    if (value) {
      r.headersOut[name] = value;
    }
  });
  r.return(reply.status, body);
}

export default {access};
